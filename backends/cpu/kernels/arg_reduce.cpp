// argmax and argmin along an axis or over all elements: the first of equals, the first NaN where there is one.
#include "kernels/families.hpp"
#include "kernels/lanes.hpp"
#include "kernels/strided.hpp"

namespace backplane::cpu {
namespace {

using plugin::Compute;
using plugin::kItemSize;
constexpr bp_dtype_mask kReal = BP_MASK_INTEGER | BP_MASK_FLOATING;

template <class T>
struct Best {
  Compute<T> value{};
  int64_t position = -1;

  template <bool Largest>
  void look(const char* x, int64_t stride, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const Compute<T> candidate = *reinterpret_cast<const T*>(x + i * stride);
      const bool better = Largest ? candidate > value : candidate < value;
      // A NaN wins once and is never beaten: it compares as false.
      if (position < 0 || better || (candidate != candidate && value == value)) {
        value = candidate;
        position = first + i;
      }
    }
  }
};

template <class T, bool Largest>
void over_all(const bp_tensor* x, int64_t* out) {
  Best<T> best;
  int64_t first = 0;
  for_each_strided_row(*x, [&](char* row, int64_t stride, int64_t n) {
    best.template look<Largest>(row, stride, first, n);
    first += n;
  });
  *out = best.position;
}

template <class T, bool Largest>
void along_axis(const bp_frame* frame, const bp_tensor* x, const bp_tensor* out, int32_t axis) {
  // The output's strides, with the axis that it may have lost.
  int64_t strides[kMaxRank];
  const bool kept = out->dl.ndim == x->dl.ndim;
  for (int32_t d = 0, own = 0; d < x->dl.ndim; ++d) {
    strides[d] = d == axis ? 0 : out->dl.strides[own];
    own += d != axis || kept;
  }
  const LaneOperand target{data_of(out), strides, sizeof(int64_t)};
  const int64_t n = x->dl.shape[axis], stride = x->dl.strides[axis] * kItemSize[x->dtype];
  const Lanes<2> lanes(x->dl.shape, x->dl.ndim, axis, {target, lane_operand(x)});
  lanes.run(frame, 2 * n, [&](char* const* p) -> const char* {
    Best<T> best;
    best.template look<Largest>(p[1], stride, 0, n);
    *reinterpret_cast<int64_t*>(p[0]) = best.position;
    return nullptr;
  });
}

// (Tensor x, Axis? axis, *, bool keepdims)
template <bool Largest>
bp_status BP_CALL arg_reduce(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    BP_CHECK(x->nbytes != 0, VALUE, frame->op->name, ": there are no elements to choose from");
    const bool all = args[1].tag == BP_TAG_ABSENT || x->dl.ndim == 0;
    const int32_t axis = all ? 0 : normalized_axis(plugin::as_int(args[1]), x->dl.ndim);
    plugin::dispatch_dtype<kReal>(x->dtype, [&]<class T>() {
      if (all)
        over_all<T, Largest>(x, reinterpret_cast<int64_t*>(data_of(out)));
      else
        along_axis<T, Largest>(frame, x, out, axis);
    });
  });
}

}  // namespace

void register_arg_reduce(const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::argmax", "cpu", arg_reduce<true>, .dtypes = kReal, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::argmin", "cpu", arg_reduce<false>, .dtypes = kReal, .flags = BP_KERNEL_STRIDED));
}

}  // namespace backplane::cpu
