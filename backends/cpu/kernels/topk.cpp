// topk: the k largest or smallest elements along an axis, by a heap of k. NaN counts as largest; of equal elements the
// first come first.
#include <algorithm>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/lanes.hpp"

namespace backplane::cpu {
namespace {

using plugin::Compute;
using plugin::kItemSize;
constexpr bp_dtype_mask kReal = BP_MASK_INTEGER | BP_MASK_FLOATING;

template <class C>
struct Ranked {
  C value;
  int64_t position;
};

template <class C>
bool is_less(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    return a < b || (b != b && a == a);
  } else {
    return a < b;
  }
}
// Does value a come before value b in the result?
template <bool Largest, class C>
bool before(C a, C b) {
  return Largest ? is_less(b, a) : is_less(a, b);
}
template <bool Largest, class C>
bool ranks_before(const Ranked<C>& a, const Ranked<C>& b) {
  return before<Largest>(a.value, b.value) || (!before<Largest>(b.value, a.value) && a.position < b.position);
}

template <class T, bool Largest>
void select_lane(const char* x, int64_t stride, int64_t n, std::vector<Ranked<Compute<T>>>& heap) {
  using C = Compute<T>;
  const auto k = static_cast<int64_t>(heap.size());
  const auto at = [&](int64_t i) { return C(*reinterpret_cast<const T*>(x + i * stride)); };
  for (int64_t i = 0; i < k; ++i) heap[static_cast<size_t>(i)] = {at(i), i};
  // The front of the heap is the last of those that are kept.
  std::make_heap(heap.begin(), heap.end(), ranks_before<Largest, C>);
  for (int64_t i = k; i < n; ++i) {
    // Of equals those that are kept came first.
    const C value = at(i);
    if (!before<Largest>(value, heap.front().value)) continue;
    std::pop_heap(heap.begin(), heap.end(), ranks_before<Largest, C>);
    heap.back() = {value, i};
    std::push_heap(heap.begin(), heap.end(), ranks_before<Largest, C>);
  }
  std::sort_heap(heap.begin(), heap.end(), ranks_before<Largest, C>);
}

template <class T, bool Largest>
void select_tensor(const bp_frame* frame, const bp_tensor* x, const bp_tensor* values, const bp_tensor* indices,
                   int32_t axis) {
  const int64_t n = x->dl.shape[axis], k = values->dl.shape[axis], from = x->dl.strides[axis] * kItemSize[x->dtype];
  const int64_t to = values->dl.strides[axis] * kItemSize[x->dtype], to_index = indices->dl.strides[axis] * 8;
  const Lanes<3> lanes(x->dl.shape, x->dl.ndim, axis, {lane_operand(values), lane_operand(indices), lane_operand(x)});
  lanes.run(frame, 4 * n + 16 * k, [&](char* const* p) -> const char* {
    std::vector<Ranked<Compute<T>>> heap(static_cast<size_t>(k));
    select_lane<T, Largest>(p[2], from, n, heap);
    for (int64_t i = 0; i < k; ++i) {
      *reinterpret_cast<T*>(p[0] + i * to) = T(heap[static_cast<size_t>(i)].value);
      *reinterpret_cast<int64_t*>(p[1] + i * to_index) = heap[static_cast<size_t>(i)].position;
    }
    return nullptr;
  });
}

// topk(Tensor x, Size k, *, Axis axis, bool largest) -> (values, indices)
bp_status BP_CALL topk(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *values = outs[0].u.t, *indices = outs[1].u.t;
    if (values->nbytes == 0) return;
    const int32_t axis = normalized_axis(plugin::as_int(args[2]), x->dl.ndim);
    plugin::dispatch_dtype<kReal>(x->dtype, [&]<class T>() {
      if (plugin::as_bool(args[3]))
        select_tensor<T, true>(frame, x, values, indices, axis);
      else
        select_tensor<T, false>(frame, x, values, indices, axis);
    });
  });
}

}  // namespace

void register_topk(const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::topk", "cpu", topk, .dtypes = kReal, .flags = BP_KERNEL_STRIDED));
}

}  // namespace backplane::cpu
