// prod_of_others: for each element the product of the other elements of its group, as mantissa and exponent, so that
// no running product over- or underflows on the way to a result that fits.
#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/strided.hpp"

namespace backplane::cpu {
namespace {

using plugin::Compute;

// A product: value * 2^exponent. Its value is 0, not finite, or far from both ends of the range.
template <class W>
struct Scaled {
  W value = 1;
  int64_t exponent = 0;

  void multiply(W factor) {
    settle(factor);
    value *= factor;
    settle(value);
  }
  W times(const Scaled& other) const {
    W product = value * other.value;
    const auto power = static_cast<int>(std::clamp<int64_t>(exponent + other.exponent, -5000, 5000));
    if constexpr (plugin::kIsComplex<W>)
      product = {std::ldexp(product.real(), power), std::ldexp(product.imag(), power)};
    else
      product = std::ldexp(product, power);
    return product;
  }

 private:
  static double size_of(W x) {
    if constexpr (plugin::kIsComplex<W>)
      return std::max(std::abs(x.real()), std::abs(x.imag()));
    else
      return std::abs(x);
  }
  void settle(W& x) {
    const double size = size_of(x);
    if ((size > 0x1p-200 && size < 0x1p200) || size == 0 || !std::isfinite(size)) return;
    int power = 0;
    std::frexp(size, &power);
    if constexpr (plugin::kIsComplex<W>)
      x = {std::ldexp(x.real(), -power), std::ldexp(x.imag(), -power)};
    else
      x = std::ldexp(x, -power);
    exponent += power;
  }
};

// Offsets, in elements, of every position along some axes, in row-major order.
std::vector<int64_t> offsets_along(const bp_tensor* t, const std::vector<bool>& wanted, bool which) {
  std::vector<int64_t> offsets{0};
  for (int32_t d = 0; d < t->dl.ndim; ++d) {
    if (wanted[static_cast<size_t>(d)] != which) continue;
    std::vector<int64_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(t->dl.shape[d]));
    for (const int64_t offset : offsets)
      for (int64_t i = 0; i < t->dl.shape[d]; ++i) next.push_back(offset + i * t->dl.strides[d]);
    offsets = std::move(next);
  }
  return offsets;
}

template <class T>
class Group {
 public:
  using W = std::conditional_t<plugin::kIsComplex<T>, std::complex<double>, double>;
  explicit Group(const std::vector<int64_t>& places) : places_(places), before_(places.size()) {}

  void run(const T* x, T* out) {
    const size_t n = places_.size();
    Scaled<W> product;
    for (size_t i = 0; i < n; ++i) {
      before_[i] = product;
      product.multiply(at(x, i));
    }
    product = {};
    for (size_t i = n; i-- > 0;) {
      out[places_[i]] = T(static_cast<Compute<T>>(before_[i].times(product)));
      product.multiply(at(x, i));
    }
  }

 private:
  W at(const T* x, size_t i) const { return static_cast<W>(static_cast<Compute<T>>(x[places_[i]])); }

  const std::vector<int64_t>& places_;
  std::vector<Scaled<W>> before_;
};

// (Tensor x, Axes? axis); contiguous tensors
bp_status BP_CALL prod_of_others(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    std::vector<bool> joined(static_cast<size_t>(x->dl.ndim), args[1].tag == BP_TAG_ABSENT);
    if (args[1].tag != BP_TAG_ABSENT)
      for (uint32_t k = 0; k < args[1].count; ++k) joined[static_cast<size_t>(args[1].u.ints[k])] = true;
    const std::vector<int64_t> places = offsets_along(x, joined, true), groups = offsets_along(x, joined, false);
    const auto count = static_cast<int64_t>(groups.size());
    const int64_t grain = std::max<int64_t>(kCheapGrain / (8 * static_cast<int64_t>(places.size())), 1);
    plugin::dispatch_dtype<BP_MASK_FLOATING | BP_MASK_COMPLEX>(x->dtype, [&]<class T>() {
      plugin::parallel_for(frame, 0, count, grain, [&](int64_t begin, int64_t end) {
        Group<T> group(places);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t at = groups[static_cast<size_t>(i)];
          group.run(reinterpret_cast<const T*>(data_of(x)) + at, reinterpret_cast<T*>(data_of(out)) + at);
        }
      });
    });
  });
}

}  // namespace

const Family kProdOfOthers([](const Registrar& registrar) {
  registrar.kernel(
      BP_KERNEL("bp::prod_of_others", "cpu", prod_of_others, .dtypes = BP_MASK_FLOATING | BP_MASK_COMPLEX));
});

}  // namespace backplane::cpu
