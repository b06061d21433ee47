// Shape rules of ops that bring tensors of different shapes together: matrix products, joining, indexing by tensors.
//
// As shape_rules.cpp: shapes in, a shape out, no data and no heap.
#include "record/shape_words.hpp"

#include <algorithm>

namespace backplane::core::shape_words {
namespace {

int64_t checked_add(const OpRecord& op, int64_t a, int64_t b) {
  int64_t sum = 0;
  BP_CHECK(!__builtin_add_overflow(a, b, &sum), MEMORY, op.name, ": the result's size exceeds 64 bits");
  return sum;
}

std::span<const int64_t> sizes_of(const bp_tensor& tensor) {
  return {tensor.dl.shape, static_cast<size_t>(tensor.dl.ndim)};
}

// The elements of a Tensor[] argument; each must be there.
std::span<bp_tensor* const> joined(const ShapeArgs& in) {
  const bp_value& list = in.value(0);
  BP_CHECK(list.tag == BP_TAG_TENSOR_LIST && list.count > 0, VALUE, in.op.name, ": argument '", in.name(0),
           "' is empty; expected at least one tensor");
  for (uint32_t i = 0; i < list.count; ++i)
    BP_CHECK(list.u.tensors[i] != nullptr, TYPE, in.op.name, ": element ", i, " of '", in.name(0), "' is none");
  return {list.u.tensors, list.count};
}

// The axis of take and take_along: left out only where there is one alone.
int32_t taken_axis(const ShapeArgs& in, int32_t ndim) {
  BP_CHECK(ndim > 0, SHAPE, in.op.name, ": argument '", in.name(0), "' has no dims to take from");
  BP_CHECK(in.has(2) || ndim == 1, VALUE, in.op.name, ": the axis may be left out only for one dim, but '", in.name(0),
           "' has ", ndim, "; use reshape(x, (-1,)) for all elements in row-major order");
  return in.has(2) ? normalize_axis(in.op, in.value(2).u.i, ndim) : 0;
}

}  // namespace

void matmul(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const auto x = in.sizes(0);
  const auto y = in.sizes(1);
  BP_CHECK(!x.empty() && !y.empty(), SHAPE, op.name, ": shapes ", shape_text(x), " and ", shape_text(y),
           "; each needs at least one dim");
  const int64_t inner_y = y.size() == 1 ? y[0] : y[y.size() - 2];
  BP_CHECK(x.back() == inner_y, SHAPE, op.name, ": shapes ", shape_text(x), " and ", shape_text(y),
           " do not fit: the inner sizes are ", x.back(), " and ", inner_y);
  if (x.size() > 2) broadcast_into(op, x.data(), static_cast<int32_t>(x.size()) - 2, out);
  if (y.size() > 2) broadcast_into(op, y.data(), static_cast<int32_t>(y.size()) - 2, out);
  if (x.size() > 1) in.add_dim(out, x[x.size() - 2]);
  if (y.size() > 1) in.add_dim(out, y.back());
  checked_count(out.sizes, out.ndim);
}

void concat(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const auto tensors = joined(in);
  if (!in.has(1)) {  // all are flattened
    int64_t total = 0;
    for (const bp_tensor* t : tensors) total = checked_add(op, total, checked_count(t->dl.shape, t->dl.ndim));
    in.add_dim(out, total);
    return;
  }
  const auto first = sizes_of(*tensors[0]);
  const size_t axis = static_cast<size_t>(normalize_axis(op, in.value(1).u.i, static_cast<int32_t>(first.size())));
  for (int64_t size : first) in.add_dim(out, size);
  for (uint32_t i = 1; i < tensors.size(); ++i) {
    const auto next = sizes_of(*tensors[i]);
    bool fits = next.size() == first.size();
    for (size_t d = 0; fits && d < first.size(); ++d) fits = d == axis || next[d] == first[d];
    BP_CHECK(fits, SHAPE, op.name, ": element ", i, " of '", in.name(0), "' has shape ", shape_text(next),
             "; except along axis ", axis, " it must agree with ", shape_text(first));
    out.sizes[axis] = checked_add(op, out.sizes[axis], next[axis]);
  }
  checked_count(out.sizes, out.ndim);
}

void stack(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const auto tensors = joined(in);
  const auto first = sizes_of(*tensors[0]);
  const int32_t axis = normalize_axis(op, in.integer(1, 0), static_cast<int32_t>(first.size()) + 1);
  for (uint32_t i = 1; i < tensors.size(); ++i) {
    const auto next = sizes_of(*tensors[i]);
    BP_CHECK(std::ranges::equal(next, first), SHAPE, op.name, ": element ", i, " of '", in.name(0), "' has shape ",
             shape_text(next), "; expected the shape of the first, ", shape_text(first));
  }
  for (int32_t d = 0; d <= static_cast<int32_t>(first.size()); ++d) {
    if (d == axis) in.add_dim(out, static_cast<int64_t>(tensors.size()));
    if (d < static_cast<int32_t>(first.size())) in.add_dim(out, first[static_cast<size_t>(d)]);
  }
  checked_count(out.sizes, out.ndim);
}

void take(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const auto x = in.sizes(0);
  const auto index = in.sizes(1);
  const int32_t axis = taken_axis(in, static_cast<int32_t>(x.size()));
  for (int32_t d = 0; d < static_cast<int32_t>(x.size()); ++d) {
    if (d != axis) {
      in.add_dim(out, x[static_cast<size_t>(d)]);
      continue;
    }
    for (int64_t size : index) in.add_dim(out, size);
  }
  checked_count(out.sizes, out.ndim);
}

void take_along(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const auto x = in.sizes(0);
  const auto index = in.sizes(1);
  const size_t axis = static_cast<size_t>(taken_axis(in, static_cast<int32_t>(x.size())));
  BP_CHECK(index.size() == x.size(), SHAPE, op.name, ": '", in.name(1), "' of shape ", shape_text(index), " must have ",
           x.size(), " dims, as '", in.name(0), "' of shape ", shape_text(x), " has");
  for (size_t d = 0; d < x.size(); ++d) {
    const bool fits = d == axis || x[d] == index[d] || x[d] == 1 || index[d] == 1;
    BP_CHECK(fits, SHAPE, op.name, ": '", in.name(1), "' of shape ", shape_text(index), " does not broadcast with '",
             in.name(0), "' of shape ", shape_text(x), " along axis ", d);
    in.add_dim(out, d == axis || x[d] == 1 ? index[d] : x[d]);
  }
  checked_count(out.sizes, out.ndim);
}

// NumPy's rule of place: the dims of the broadcast index stand where the indices stood if those are neighbours, and
// come first if an axis without index separates them.
void index(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const auto x = in.sizes(0);
  const bp_value& list = in.value(1);
  const uint32_t count = list.tag == BP_TAG_TENSOR_LIST ? list.count : 0;
  BP_CHECK(list.tag == BP_TAG_TENSOR_LIST || list.count == 0, TYPE, op.name, ": argument '", in.name(1),
           "' is not a list of tensors");
  BP_CHECK(count <= x.size(), INDEX, op.name, ": ", count, " indices for a tensor of ", x.size(), " dims");
  ShapeResult joint;
  uint32_t first = count, last = 0, given = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const bp_tensor* tensor = list.u.tensors[i];
    if (!tensor) continue;
    BP_CHECK(BP_DTYPE_BIT(tensor->dtype) & BP_MASK_INTEGER, DTYPE, op.name, ": element ", i, " of '", in.name(1),
             "' is not of an integer dtype");
    if (given++ == 0) first = i;
    last = i;
    broadcast_into(op, tensor->dl.shape, tensor->dl.ndim, joint);
  }
  const bool neighbours = given == 0 || last - first + 1 == given;
  const uint32_t place = neighbours ? first : 0;
  for (uint32_t i = 0; i <= x.size(); ++i) {
    if (given && i == place)
      for (int32_t d = 0; d < joint.ndim; ++d) in.add_dim(out, joint.sizes[d]);
    if (i < x.size() && (i >= count || !list.u.tensors[i])) in.add_dim(out, x[i]);
  }
  checked_count(out.sizes, out.ndim);
}

void index_put(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  ShapeResult read;
  index(op, rule, args, read);
  const std::span<const int64_t> given = in.sizes(2), places{read.sizes, static_cast<size_t>(read.ndim)};
  BP_CHECK(broadcasts_to(given, places), SHAPE, op.name, ": '", in.name(2), "' of shape ", shape_text(given),
           " does not broadcast to the shape ", shape_text(places), " that the indices select");
  for (int64_t size : in.sizes(0)) in.add_dim(out, size);
}

void one_hot(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const int64_t n = in.value(1).u.i;
  BP_CHECK(n >= 0, VALUE, op.name, ": '", in.name(1), "' is ", n, "; expected 0 or more");
  for (int64_t size : in.sizes(0)) in.add_dim(out, size);
  in.add_dim(out, n);
  checked_count(out.sizes, out.ndim);
}

}  // namespace backplane::core::shape_words
