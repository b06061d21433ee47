// cumsum and cumprod: running sums and products along an axis, in 64 bits for integers and in double for floating
// types.
#include <complex>
#include <vector>

#include "kernels/cast.hpp"
#include "kernels/families.hpp"
#include "kernels/lanes.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

struct Sum {
  template <class T>
  static T join(T a, T b) {
    return a + b;
  }
};
struct Product {
  template <class T>
  static T join(T a, T b) {
    return a * b;
  }
};

template <class T, class Join>
void scan_lane(std::vector<char>& lane, int64_t n) {
  T* values = reinterpret_cast<T*>(lane.data());
  for (int64_t i = 1; i < n; ++i) values[i] = Join::join(values[i - 1], values[i]);
}

// (Tensor x, Axis axis, *, Dtype? dtype)
template <class Join>
bp_status BP_CALL scan(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    const int32_t rank = x->dl.ndim, axis = rank == 0 ? 0 : normalized_axis(plugin::as_int(args[1]), rank);
    if (out->nbytes == 0) return;
    const bp_dtype_mask kinds = BP_DTYPE_BIT(x->dtype) | BP_DTYPE_BIT(out->dtype);
    const bp_dtype sum = (kinds & BP_MASK_COMPLEX) != 0    ? BP_COMPLEX128
                         : (kinds & BP_MASK_FLOATING) != 0 ? BP_FLOAT64
                                                           : BP_UINT64;
    const int64_t n = rank == 0 ? 1 : x->dl.shape[axis], item = kItemSize[sum];
    const int64_t from = rank == 0 ? 0 : x->dl.strides[axis] * kItemSize[x->dtype];
    const int64_t to = rank == 0 ? 0 : out->dl.strides[axis] * kItemSize[out->dtype];
    const Lanes<2> lanes(x->dl.shape, rank, axis, {lane_operand(out), lane_operand(x)});
    lanes.run(frame, 4 * n, [&](char* const* p) -> const char* {
      std::vector<char> lane(static_cast<size_t>(n * item));
      cast_row(x->dtype, p[1], from, sum, lane.data(), item, n);
      if (sum == BP_UINT64)
        scan_lane<uint64_t, Join>(lane, n);
      else if (sum == BP_FLOAT64)
        scan_lane<double, Join>(lane, n);
      else
        scan_lane<std::complex<double>, Join>(lane, n);
      cast_row(sum, lane.data(), item, out->dtype, p[0], to, n);
      return nullptr;
    });
  });
}

}  // namespace

void register_scan(const Registrar& registrar) {
  registrar.kernel(
      BP_KERNEL("bp::cumsum", "cpu", scan<Sum>, .dtypes = BP_MASK_ANY & ~BP_MASK_BOOL, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::cumprod", "cpu", scan<Product>, .dtypes = BP_MASK_ANY & ~BP_MASK_BOOL,
                             .flags = BP_KERNEL_STRIDED));
}

}  // namespace backplane::cpu
