// argsort and sort along one axis; NaN counts as largest. Sorting is stable.
#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/lanes.hpp"

namespace backplane::cpu {
namespace {

using plugin::Compute;
using plugin::kItemSize;
constexpr bp_dtype_mask kSortable = BP_MASK_BOOL | BP_MASK_INTEGER | BP_MASK_FLOATING;

template <class T>
bool is_less(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a < b || (b != b && a == a);
  } else {
    return a < b;
  }
}

// Elements and their positions, sorted together: comparisons then touch memory in order.
template <class T>
struct Entry {
  Compute<T> value;
  int64_t position;
};

template <class T>
void load_lane(const char* x, int64_t stride, std::vector<Entry<T>>& lane) {
  for (size_t i = 0; i < lane.size(); ++i)
    lane[i] = {*reinterpret_cast<const T*>(x + static_cast<int64_t>(i) * stride), static_cast<int64_t>(i)};
}
template <class T>
void sort_lane(std::vector<Entry<T>>& lane, bool descending) {
  // Ties keep the order of their positions in both directions.
  std::stable_sort(lane.begin(), lane.end(), [descending](const Entry<T>& a, const Entry<T>& b) {
    return descending ? is_less(b.value, a.value) : is_less(a.value, b.value);
  });
}

// What is stored of a sorted lane: positions (int64) or values.
template <class T, bool Positions>
void sort_tensor(const bp_frame* frame, const bp_tensor* x, const bp_tensor* out, int32_t axis, bool descending) {
  const int32_t rank = x->dl.ndim;
  const int64_t n = rank == 0 ? 1 : x->dl.shape[axis];
  if (out->nbytes == 0) return;
  const int64_t x_stride = rank == 0 ? 0 : x->dl.strides[axis] * kItemSize[x->dtype];
  const int64_t out_stride = rank == 0 ? 0 : out->dl.strides[axis] * kItemSize[out->dtype];
  const Lanes<2> lanes(x->dl.shape, rank, axis, {lane_operand(out), lane_operand(x)});
  lanes.run(frame, 16 * n, [&](char* const* p) -> const char* {
    std::vector<Entry<T>> lane(static_cast<size_t>(n));
    load_lane<T>(p[1], x_stride, lane);
    sort_lane<T>(lane, descending);
    for (int64_t i = 0; i < n; ++i) {
      const Entry<T>& entry = lane[static_cast<size_t>(i)];
      if constexpr (Positions)
        *reinterpret_cast<int64_t*>(p[0] + i * out_stride) = entry.position;
      else
        *reinterpret_cast<T*>(p[0] + i * out_stride) = T(entry.value);
    }
    return nullptr;
  });
}

// (Tensor x, *, Axis axis, bool descending, bool stable)
template <bool Positions>
bp_status BP_CALL sort_kernel(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    const int32_t axis = normalized_axis(plugin::as_int(args[1]), x->dl.ndim);
    plugin::dispatch_dtype<kSortable>(x->dtype, [&]<class T>() {
      using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
      sort_tensor<Stored, Positions>(frame, x, outs[0].u.t, axis, plugin::as_bool(args[2]));
    });
  });
}

}  // namespace

void register_sort(const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::argsort", "cpu", sort_kernel<true>, .dtypes = kSortable, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::sort", "cpu", sort_kernel<false>, .dtypes = kSortable, .flags = BP_KERNEL_STRIDED));
}

}  // namespace backplane::cpu
