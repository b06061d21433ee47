// Shape rules of views: sizes, strides and the offset from the base, so that no byte moves.
//
// As shape_rules.cpp: handles in, metadata out, no data and no heap. Strides are in elements of the result's dtype, the
// offset in bytes. Whether the storage holds what a view sees is checked where the view is made.
#include "record/shape_words.hpp"

#include <algorithm>

#include "record/dtype_rules.hpp"
#include "record/slices.hpp"

namespace backplane::core::shape_words {
namespace {

int64_t item_size(const bp_tensor& tensor) { return kItemSize[tensor.dtype]; }

void add_view_dim(const ShapeArgs& in, ShapeResult& out, int64_t size, int64_t stride) {
  in.add_dim(out, size);
  out.strides[out.ndim - 1] = stride;
}

// Dims of x as they are. A rule that adds none beside them stays within kMaxRank.
void keep_dims(const DLTensor& x, int32_t from, int32_t to, ShapeResult& out) {
  int32_t n = out.ndim;
  for (int32_t d = from; d < to; ++d, ++n) {
    out.sizes[n] = x.shape[d];
    out.strides[n] = x.strides[d];
  }
  out.ndim = n;
}

// One entry per axis, where the list is there.
OptionalInts optional_ints(const ShapeArgs& in, uint32_t param, size_t count) {
  if (!in.has(param)) return {};
  const bp_value& list = in.value(param);
  BP_CHECK(list.count == count && (list.tag == BP_TAG_INT_LIST || list.tag == BP_TAG_VALUE_LIST || count == 0), VALUE,
           in.op.name, ": '", in.name(param), "' has ", list.count, " entries; expected ", count, ", one per axis");
  return OptionalInts(list);
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_index(const OpRecord& op, int64_t index, int32_t axis, int64_t size) {
  detail::fail(BP_ERROR_INDEX, op.name, ": index ", index, " is out of range for axis ", axis, " of size ", size);
}

// Can the elements of `x`, in row-major order, be addressed with `out.sizes`? Writes out.strides if so. Runs of x's
// dims that are contiguous among themselves are matched with runs of new dims of the same product.
bool strides_of_reshape(const DLTensor& x, ShapeResult& out) {
  int32_t next = out.ndim - 1;
  int64_t run = 1;      // elements of the current run of x
  int64_t covered = 1;  // of the new dims placed on it
  int64_t stride = 1;   // of the run's innermost dim
  bool open = false;
  for (int32_t d = x.ndim - 1; d >= 0; --d) {
    if (x.shape[d] == 1) continue;
    if (!open) {
      stride = x.strides[d];
      open = true;
    }
    run *= x.shape[d];
    int32_t outer = d - 1;
    while (outer >= 0 && x.shape[outer] == 1) --outer;
    if (outer >= 0 && x.strides[outer] == x.strides[d] * x.shape[d]) continue;
    while (next >= 0 && (covered < run || out.sizes[next] == 1)) {
      out.strides[next] = stride * covered;
      covered *= out.sizes[next--];
    }
    if (covered != run) return false;
    run = covered = 1;
    open = false;
  }
  for (; next >= 0; --next) out.strides[next] = 1;  // size 1, or x has one element
  return true;
}

void contiguous_strides(ShapeResult& out) {
  int64_t stride = 1;
  for (int32_t d = out.ndim - 1; d >= 0; --d) {
    out.strides[d] = stride;
    stride *= std::max<int64_t>(out.sizes[d], 1);
  }
}

void part(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, bool imaginary, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const bp_tensor& x = in.tensor(0);
  const bp_dtype real = real_dtype(x.dtype);
  const bool is_complex = real != x.dtype;
  BP_CHECK(is_complex || !imaginary, DTYPE, op.name, ": argument '", in.name(0), "' is ", kDtypeNames[x.dtype],
           "; a view of imaginary parts needs a complex tensor");
  out.is_view = true;
  out.view_dtype = real;
  for (int32_t d = 0; d < x.dl.ndim; ++d) add_view_dim(in, out, x.dl.shape[d], x.dl.strides[d] * (is_complex ? 2 : 1));
  out.byte_offset = imaginary ? item_size(x) / 2 : 0;
}

}  // namespace

void permute(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const DLTensor& x = in.tensor(0).dl;
  out.is_view = true;
  if (!in.has(1)) {  // as NumPy's transpose: all axes reversed
    for (int32_t d = x.ndim - 1; d >= 0; --d) add_view_dim(in, out, x.shape[d], x.strides[d]);
    return;
  }
  const auto axes = in.ints(1);
  BP_CHECK(axes.size() == static_cast<size_t>(x.ndim), VALUE, op.name, ": '", in.name(1), "' names ", axes.size(),
           " axes of a tensor with ", x.ndim);
  const int32_t ndim = x.ndim;
  uint64_t seen = 0;
  int32_t n = 0;
  for (; n < ndim; ++n) {
    const int64_t axis = axes[static_cast<size_t>(n)];
    const auto d = static_cast<uint64_t>(axis < 0 ? axis + ndim : axis);
    if (d >= static_cast<uint64_t>(ndim)) [[unlikely]]
      fail_axis(op, axis, ndim);
    seen |= uint64_t{1} << d;
    out.sizes[n] = x.shape[d];
    out.strides[n] = x.strides[d];
  }
  out.ndim = n;
  // Each was in range: all were named, or one of them twice.
  if (ndim > 0 && seen != ~uint64_t{0} >> (64 - ndim)) [[unlikely]]
    in.axes(1, ndim);
}

void expand(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const DLTensor& x = in.tensor(0).dl;
  const auto shape = in.ints(1);
  const int32_t added = static_cast<int32_t>(shape.size()) - x.ndim;
  out.is_view = true;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int32_t d = static_cast<int32_t>(i) - added;
    const bool own = d >= 0 && x.shape[d] == shape[i];
    BP_CHECK(added >= 0 && shape[i] >= 0 && (d < 0 || own || x.shape[d] == 1), SHAPE, op.name, ": the shape ",
             shape_text({x.shape, static_cast<size_t>(x.ndim)}), " does not broadcast to ", shape_text(shape));
    add_view_dim(in, out, shape[i], own ? x.strides[d] : 0);
  }
  BP_CHECK(added >= 0, SHAPE, op.name, ": a tensor of ", x.ndim, " dims does not broadcast to ", shape_text(shape));
  checked_count(out.sizes, out.ndim);
}

void select(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const bp_tensor& x = in.tensor(0);
  const int32_t axis = normalize_axis(op, in.value(1).u.i, x.dl.ndim);
  const int64_t size = x.dl.shape[axis];
  const int64_t index = in.value(2).u.i;
  if (index < -size || index >= size) [[unlikely]]
    fail_index(op, index, axis, size);
  out.is_view = true;
  keep_dims(x.dl, 0, axis, out);
  keep_dims(x.dl, axis + 1, x.dl.ndim, out);
  out.byte_offset = (index < 0 ? index + size : index) * x.dl.strides[axis] * item_size(x);
}

void slice(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const bp_tensor& x = in.tensor(0);
  const auto axes = in.ints(1);
  const OptionalInts starts = optional_ints(in, 2, axes.size()), stops = optional_ints(in, 3, axes.size()),
                     steps = optional_ints(in, 4, axes.size());
  out.is_view = true;
  keep_dims(x.dl, 0, x.dl.ndim, out);
  uint64_t seen = 0;
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int32_t d = in.next_axis(1, axes[i], x.dl.ndim, seen);
    int64_t step = 1;
    steps.get(i, step);
    BP_CHECK(step != 0, VALUE, op.name, ": the step of axis ", axes[i], " is 0");
    const Slice cut = slice_of(starts, stops, i, step, x.dl.shape[d]);
    out.sizes[d] = cut.count;
    if (cut.count > 1) out.strides[d] = x.dl.strides[d] * step;  // with one element a huge step is never taken
    offset += cut.start * x.dl.strides[d];
  }
  // Nothing is read of an empty view, and its start could lie behind the storage's end.
  bool empty = false;
  for (int32_t d = 0; d < out.ndim; ++d) empty |= out.sizes[d] == 0;
  out.byte_offset = empty ? 0 : offset * item_size(x);
}

void slice_put(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const auto sizes = in.sizes(0), given = in.sizes(1);
  const auto axes = in.ints(2);
  const OptionalInts starts = optional_ints(in, 3, axes.size()), stops = optional_ints(in, 4, axes.size()),
                     steps = optional_ints(in, 5, axes.size());
  for (const int64_t size : sizes) in.add_dim(out, size);
  int64_t piece[kMaxRank];
  std::copy(sizes.begin(), sizes.end(), piece);
  uint64_t seen = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int32_t d = in.next_axis(2, axes[i], out.ndim, seen);
    int64_t step = 1;
    steps.get(i, step);
    BP_CHECK(step != 0, VALUE, op.name, ": the step of axis ", axes[i], " is 0");
    piece[d] = slice_of(starts, stops, i, step, sizes[d]).count;
  }
  BP_CHECK(broadcasts_to(given, {piece, sizes.size()}), SHAPE, op.name, ": '", in.name(1), "' of shape ",
           shape_text(given), " does not broadcast to the slice, of shape ", shape_text({piece, sizes.size()}));
}

void squeeze(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const DLTensor& x = in.tensor(0).dl;
  const bool all = !in.has(1);
  const uint64_t named = all ? ~uint64_t{0} : in.axes(1, x.ndim);
  out.is_view = true;
  for (int32_t d = 0; d < x.ndim; ++d) {
    const bool gone = ((named >> d) & 1) && x.shape[d] == 1;
    BP_CHECK(gone || all || !((named >> d) & 1), SHAPE, op.name, ": axis ", d, " has size ", x.shape[d],
             "; only axes of size 1 can be squeezed");
    if (!gone) add_view_dim(in, out, x.shape[d], x.strides[d]);
  }
}

void unsqueeze(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const DLTensor& x = in.tensor(0).dl;
  BP_CHECK(in.has(1), TYPE, op.name, ": argument '", in.name(1), "' is none; expected the axes to insert");
  const int64_t ndim = x.ndim + static_cast<int64_t>(in.ints(1).size());
  BP_CHECK(ndim <= kMaxRank, SHAPE, op.name, ": the result would have ", ndim, " dims; at most ", kMaxRank,
           " are allowed");
  const uint64_t added = in.axes(1, static_cast<int32_t>(ndim));
  out.is_view = true;
  int32_t from = 0;
  for (int32_t d = 0; d < ndim; ++d) {
    if ((added >> d) & 1) {
      // Such a stride keeps a contiguous tensor contiguous for readers that look at strides alone.
      add_view_dim(in, out, 1, from < x.ndim ? x.strides[from] * std::max<int64_t>(x.shape[from], 1) : 1);
    } else {
      add_view_dim(in, out, x.shape[from], x.strides[from]);
      ++from;
    }
  }
}

void diagonal(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const bp_tensor& tensor = in.tensor(0);
  const DLTensor& x = tensor.dl;
  const int64_t offset = in.integer(1, 0);
  const int32_t rows = normalize_axis(op, in.integer(2, 0), x.ndim);
  const int32_t columns = normalize_axis(op, in.integer(3, 1), x.ndim);
  BP_CHECK(rows != columns, VALUE, op.name, ": a diagonal needs two axes, and both are ", rows);
  out.is_view = true;
  for (int32_t d = 0; d < x.ndim; ++d)
    if (d != rows && d != columns) add_view_dim(in, out, x.shape[d], x.strides[d]);
  // A diagonal that begins beyond either edge is empty; compared before subtracting, so that nothing overflows.
  const int64_t n_rows = x.shape[rows], n_columns = x.shape[columns];
  int64_t count = 0;
  if (offset >= 0 && offset < n_columns) count = std::min(n_rows, n_columns - offset);
  if (offset < 0 && offset > -n_rows) count = std::min(n_rows + offset, n_columns);
  add_view_dim(in, out, count, x.strides[rows] + x.strides[columns]);
  if (count == 0) return;
  const int64_t start = offset >= 0 ? offset * x.strides[columns] : -offset * x.strides[rows];
  out.byte_offset = start * item_size(tensor);
}

void reshape(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const auto from = in.sizes(0);
  const auto shape = in.ints(1);
  const int64_t count = checked_count(from.data(), static_cast<int32_t>(from.size()));
  int64_t rest = 1;
  bool overflow = false;
  int32_t unknown = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool infer = shape[i] == -1;
    BP_CHECK(shape[i] >= 0 || (infer && unknown < 0), SHAPE, op.name, ": the shape ", shape_text(shape),
             " has a negative size; one alone may be -1");
    if (infer) unknown = static_cast<int32_t>(i);
    if (!infer && shape[i] != 0) overflow |= __builtin_mul_overflow(rest, shape[i], &rest);
    in.add_dim(out, shape[i]);
  }
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (empty) checked_count(shape.data(), out.ndim);
  const bool fits = empty ? unknown < 0 && count == 0  // with a 0, -1 could be anything
                          : !overflow && (unknown < 0 ? rest == count : count % rest == 0);
  BP_CHECK(fits, SHAPE, op.name, ": a tensor of shape ", shape_text(from), " with ", count,
           " elements cannot take the shape ", shape_text(shape));
  if (unknown >= 0) out.sizes[unknown] = count / rest;
  if (in.value(0).tag != BP_TAG_TENSOR) return;  // a number: the caller makes the tensor
  const bp_tensor& x = in.tensor(0);
  if (count == 0 || (x.flags & BP_TENSOR_CONTIGUOUS)) {
    contiguous_strides(out);
    out.is_view = true;
  } else {
    out.is_view = strides_of_reshape(x.dl, out);
  }
}

// Elements of another size lie along the last axis, as in NumPy and PyTorch.
void bitcast(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const bp_tensor& x = in.tensor(0);
  const auto dtype = static_cast<bp_dtype>(in.value(1).u.i);
  const int64_t from = item_size(x), to = kItemSize[dtype];
  BP_CHECK(dtype != BP_BOOL || x.dtype == BP_BOOL, DTYPE, op.name, ": argument '", in.name(1),
           "': found bool, whose elements are only 0 or 1. Fix: compare with 0, which gives bools");
  // Elsewhere than on the host the base may be a handle; allocations there are aligned.
  const uintptr_t base = x.dl.device.device_type == kDLCPU ? reinterpret_cast<uintptr_t>(x.dl.data) : 0;
  const auto address = static_cast<int64_t>(base + x.dl.byte_offset);
  BP_CHECK(address % to == 0, VALUE, op.name, ": argument '", in.name(0),
           "' begins at an address that is not a multiple of ", to, ", the size of ", kDtypeNames[dtype],
           ". Fix: copy it first");
  out.is_view = true;
  out.view_dtype = dtype;
  const int32_t last = x.dl.ndim - 1;
  if (from == to) return keep_dims(x.dl, 0, x.dl.ndim, out);
  BP_CHECK(last >= 0, SHAPE, op.name, ": argument '", in.name(0), "' has no dimensions, and ", kDtypeNames[dtype],
           " has elements of another size than ", kDtypeNames[x.dtype], ". Fix: give it an axis with reshape(x, (1,))");
  BP_CHECK(x.dl.strides[last] == 1 || x.dl.shape[last] == 1, VALUE, op.name, ": argument '", in.name(0),
           "' has stride ", x.dl.strides[last],
           " along its last axis; expected 1 for a dtype of another size. Fix: copy it first");
  const bool divides = x.dl.shape[last] * from % to == 0;
  BP_CHECK(divides, SHAPE, op.name, ": argument '", in.name(0), "' has size ", x.dl.shape[last],
           " along its last axis; expected a multiple of ", to / from, ", so that whole elements of ",
           kDtypeNames[dtype], " result");
  for (int32_t d = 0; d < last; ++d) {
    BP_CHECK(x.dl.shape[d] <= 1 || x.dl.shape[last] == 0 || x.dl.strides[d] * from % to == 0, VALUE, op.name,
             ": argument '", in.name(0), "' has stride ", x.dl.strides[d], " along axis ", d,
             "; expected a multiple of ", to / from, ". Fix: copy it first");
    add_view_dim(in, out, x.dl.shape[d], x.dl.strides[d] * from / to);
  }
  add_view_dim(in, out, x.dl.shape[last] * from / to, 1);
}

void real(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  part(op, rule, args, false, out);
}

void imag(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  part(op, rule, args, true, out);
}

}  // namespace backplane::core::shape_words
