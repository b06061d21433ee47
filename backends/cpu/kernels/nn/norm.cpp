// layer_norm and rms_norm over trailing axes; other axes go by decomposition. Half floats are computed in float32.
#include <cmath>
#include <limits>

#include "kernels/families.hpp"
#include "kernels/nn/norm_operands.hpp"
#include "kernels/reduction/root_of_squares.hpp"
#include "loops/axis_block.hpp"

namespace backplane::cpu {
namespace {

// An optional weight or bias of a row, as moment_loops.hpp has it.
template <class S>
class RowOperand {
 public:
  using C = plugin::Compute<S>;
  explicit RowOperand(const bp_value& value) {
    if (value.tag != BP_TAG_TENSOR) return;
    if constexpr (std::is_same_v<S, C>) {
      elements_ = elements<const S>(value);
    } else {
      const auto n = static_cast<int64_t>(value.u.t->nbytes / sizeof(S));
      widened_.emplace(n);
      moment_loops<S>().widen_in_pairs(elements<const S>(value), widened_->get(), n);
      elements_ = widened_->get();
    }
  }
  const C* get() const { return elements_; }

 private:
  std::optional<Scratch<C>> widened_;
  const C* elements_ = nullptr;
};

// row(number of the row's first element) for the blocks of x along trailing axes.
template <class Row>
void for_each_block(const bp_frame* frame, const AxisBlock& block, Row&& row) {
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) row(i * block.n);
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / (2 * block.n), 1);
  if (block.outer <= grain) return range(0, block.outer);
  plugin::parallel_for(frame, 0, block.outer, grain, range);
}

// out = (x - shift) / divisor * weight + bias. Of a divisor whose reciprocal overflows in two steps.
template <class S>
void divide_row(const S* x, plugin::Compute<S> shift, double divisor, const plugin::Compute<S>* weight,
                const plugin::Compute<S>* bias, S* out, int64_t n) {
  using C = plugin::Compute<S>;
  const auto normalize = moment_loops<S>().normalize;
  if (!(divisor > 0 && divisor * std::numeric_limits<C>::max() < 1))
    return normalize(x, shift, static_cast<C>(1 / divisor), weight, bias, out, n);
  constexpr int kPower = std::numeric_limits<C>::digits + 8;  // the least number times 2^kPower has a reciprocal
  normalize(x, shift, std::ldexp(C(1), kPower), nullptr, nullptr, out, n);
  normalize(out, C(0), static_cast<C>(1 / std::ldexp(divisor, kPower)), weight, bias, out, n);
}

// layer_norm(Tensor x, Tensor? weight, Tensor? bias, *, Axes axis, Scalar eps)
bp_status BP_CALL layer_norm(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    if (x->nbytes == 0) return;
    const AxisBlock block = axis_block(x, args[3]);
    const double eps = plugin::as_double(args[4]);
    plugin::dispatch_dtype<BP_MASK_FLOATING>(x->dtype, [&]<class S>() {
      using C = plugin::Compute<S>;
      const RowOperand<S> weight(args[1]), bias(args[2]);
      for_each_block(frame, block, [&](int64_t at) {
        const S* row = elements<S>(args[0]) + at;
        const Moments m = row_moments(row, block.n);
        divide_row(row, static_cast<C>(m.mean), m.spread(eps), weight.get(), bias.get(), elements<S>(outs[0]) + at,
                   block.n);
      });
    });
  });
}

// sqrt(mean(x^2) + eps)
template <class S>
double root_mean_square(const S* x, int64_t n, double eps) {
  using C = plugin::Compute<S>;
  const auto count = static_cast<double>(n);
  const double squares = moment_loops<S>().distances(x, C(0), n).squares;
  if (squares_in_range<C>(squares, count)) return std::sqrt(squares / count + eps);
  return std::hypot(root_of_squares(squares, x, n, 1) / std::sqrt(count), std::sqrt(eps));
}

// rms_norm(Tensor x, Tensor? weight, *, Axes axis, Scalar eps)
bp_status BP_CALL rms_norm(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    if (x->nbytes == 0) return;
    const AxisBlock block = axis_block(x, args[2]);
    const double eps = plugin::as_double(args[3]);
    plugin::dispatch_dtype<BP_MASK_FLOATING>(x->dtype, [&]<class S>() {
      using C = plugin::Compute<S>;
      const RowOperand<S> weight(args[1]);
      for_each_block(frame, block, [&](int64_t at) {
        const S* row = elements<S>(args[0]) + at;
        divide_row<S>(row, C(0), root_mean_square(row, block.n, eps), weight.get(), nullptr, elements<S>(outs[0]) + at,
                      block.n);
      });
    });
  });
}

// Takes trailing axes, with a weight (and bias) of just their shape; the axes are the argument number `Axes`.
template <int Axes>
bp_status BP_CALL supports_trailing(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const bp_tensor* x = args[0].tag == BP_TAG_TENSOR ? args[0].u.t : nullptr;
  bool fits = x != nullptr && x->dl.ndim > 0 && args[Axes].count > 0;
  if (fits) {
    const AxisBlock block = axis_block(x, args[Axes]);
    fits = block.neighbours && block.inner == 1;
  }
  for (int i = 1; i < Axes; ++i) {
    if (args[i].tag == BP_TAG_ABSENT) continue;
    fits = fits && args[i].tag == BP_TAG_TENSOR && args[i].u.t->dl.ndim == static_cast<int32_t>(args[Axes].count);
    for (int32_t d = 0; fits && d < args[i].u.t->dl.ndim; ++d)
      fits = args[i].u.t->dl.shape[d] == x->dl.shape[x->dl.ndim - args[i].u.t->dl.ndim + d];
  }
  if (fits) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes the last axes, with weight and bias of their shape");
  return BP_ERROR_NOT_IMPLEMENTED;
}

}  // namespace

const Family kNorm([](const Registrar& registrar) {
  registrar.kernel(
      BP_KERNEL("bp::layer_norm", "cpu", layer_norm, .dtypes = BP_MASK_FLOATING, .supports = supports_trailing<3>));
  registrar.kernel(
      BP_KERNEL("bp::rms_norm", "cpu", rms_norm, .dtypes = BP_MASK_FLOATING, .supports = supports_trailing<2>));
});

}  // namespace backplane::cpu
