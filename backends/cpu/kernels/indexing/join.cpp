// concat, and slice_put: whole regions copied to their place.
#include <algorithm>
#include <cstring>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/lanes.hpp"
#include "loops/region.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

// Contiguous pieces of slices before the axis, slice by slice, so that the result is written from its beginning to its
// end. False where a tensor is not contiguous, or the first axis is joined: then whole tensors are copied.
bool join_slices(const bp_frame* frame, const bp_value& arrays, int32_t axis, const bp_tensor* out) {
  int64_t slices = 1, whole = kItemSize[out->dtype];
  for (int32_t d = 0; d < axis; ++d) slices *= out->dl.shape[d];
  for (int32_t d = axis; d < out->dl.ndim; ++d) whole *= out->dl.shape[d];
  if (slices == 1 || out->nbytes == 0 || (out->flags & BP_TENSOR_CONTIGUOUS) == 0) return false;
  for (uint32_t i = 0; i < arrays.count; ++i)
    if ((arrays.u.tensors[i]->flags & BP_TENSOR_CONTIGUOUS) == 0) return false;
  const auto range = [&](int64_t begin, int64_t end) {
    char* to = data_of(out) + begin * whole;
    for (int64_t slice = begin; slice < end; ++slice)
      for (uint32_t i = 0; i < arrays.count; ++i) {
        const bp_tensor* x = arrays.u.tensors[i];
        const auto bytes = static_cast<int64_t>(x->nbytes) / slices;
        if (bytes == 0) continue;  // its data may be null
        std::memcpy(to, data_of(x) + slice * bytes, static_cast<size_t>(bytes));
        to += bytes;
      }
  };
  const int64_t grain = std::max<int64_t>(4 * kCheapGrain / whole, 1);
  if (slices <= grain)
    range(0, slices);
  else
    plugin::parallel_for(frame, 0, slices, grain, range);
  return true;
}

// concat(Tensor[] arrays, *, Axis axis)
bp_status BP_CALL concat(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* out = outs[0].u.t;
    const int32_t rank = out->dl.ndim, axis = normalized_axis(plugin::as_int(args[1]), rank);
    if (join_slices(frame, args[0], axis, out)) return;
    char* to = data_of(out);
    for (uint32_t i = 0; i < args[0].count; ++i) {
      const bp_tensor* x = args[0].u.tensors[i];
      copy_region(frame, x->dtype, rank, x->dl.shape, {data_of(x), x->dl.strides}, {to, out->dl.strides});
      to += x->dl.shape[axis] * out->dl.strides[axis] * kItemSize[out->dtype];
    }
  });
}

// Python's slice of an axis: where it begins and how many elements it has.
struct Piece {
  int64_t start, count;
};
Piece piece_of(const bp_value& start, const bp_value& stop, int64_t step, int64_t size) {
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
  const auto place = [&](const bp_value& value, int64_t otherwise) {
    if (value.tag == BP_TAG_ABSENT) return otherwise;
    const int64_t at = plugin::as_int(value);
    return std::clamp(at < 0 ? at + size : at, lowest, highest);
  };
  const int64_t first = place(start, step > 0 ? lowest : highest);
  const int64_t last = place(stop, step > 0 ? highest : lowest);
  const int64_t length = step > 0 ? last - first : first - last;
  // -step of the least integer does not exist.
  return {first, length <= 0 ? 0 : (step > 0 ? (length - 1) / step : (1 - length) / step) + 1};
}

// An element of a list of ints, some of which may be absent.
bp_value element_of(const bp_value& list, uint32_t i) {
  if (list.tag == BP_TAG_VALUE_LIST) return list.u.values[i];
  bp_value value{};
  value.tag = BP_TAG_INT;
  value.u.i = list.u.ints[i];
  return value;
}

// slice_put(Tensor x, Tensor value, Axes axes, Index?[] starts, Index?[] stops, Index[] steps)
bp_status BP_CALL slice_put(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *value = plugin::as_tensor(args[1]), *out = outs[0].u.t;
    const int32_t rank = out->dl.ndim;
    copy_region(frame, x->dtype, rank, x->dl.shape, {data_of(x), x->dl.strides}, {data_of(out), out->dl.strides});
    int64_t shape[kMaxRank], strides[kMaxRank], sources[kMaxRank];
    std::copy(out->dl.shape, out->dl.shape + rank, shape);
    std::copy(out->dl.strides, out->dl.strides + rank, strides);
    char* to = data_of(out);
    for (uint32_t i = 0; i < args[2].count; ++i) {
      const int32_t axis = normalized_axis(args[2].u.ints[i], rank);
      const int64_t step = plugin::as_int(element_of(args[5], i));
      BP_CHECK(step != 0, VALUE, frame->op->name, ": the step of axis ", axis, " is 0");
      const Piece piece = piece_of(element_of(args[3], i), element_of(args[4], i), step, shape[axis]);
      to += piece.start * strides[axis] * kItemSize[out->dtype];
      shape[axis] = piece.count;
      if (piece.count > 1) strides[axis] *= step;  // else nobody steps, and the product may not be a number
    }
    const int32_t missing = rank - value->dl.ndim;
    BP_CHECK(missing >= 0, SHAPE, frame->op->name, ": value has ", value->dl.ndim, " axes, more than x");
    for (int32_t d = 0; d < rank; ++d) {
      const int64_t size = d < missing ? 1 : value->dl.shape[d - missing];
      BP_CHECK(size == 1 || size == shape[d], SHAPE, frame->op->name, ": value has size ", size, " along axis ", d,
               " of the slice, which has ", shape[d], "; it must have that or 1");
      sources[d] = size == 1 ? 0 : value->dl.strides[d - missing];
    }
    copy_region(frame, out->dtype, rank, shape, {data_of(value), sources}, {to, strides});
  });
}

}  // namespace

const Family kJoin([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::concat", "cpu", concat, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::slice_put", "cpu", slice_put, .flags = BP_KERNEL_STRIDED));
});

}  // namespace backplane::cpu
