// See role_calls.hpp.
#include "call/formulas/role_calls.hpp"

#include <algorithm>

#include "record/shape_rules.hpp"

namespace backplane::core::roles {
namespace {

template <size_t N>
Tensor call_role(Role role, const bp_value (&args)[N], uint64_t mask) {
  return Tensor::adopt(call_one(role_op(role), args, N, mask));
}

template <size_t N>
void call_role_into(Role role, const bp_value (&args)[N], bp_value target, uint64_t mask) {
  target.flags = BP_VALUE_GIVEN;
  call(role_op(role), args, N, &target, 1, mask);
}

}  // namespace

Tensor add(TensorImpl* a, TensorImpl* b) { return call_role(Role::kAdd, {tensor_value(a), tensor_value(b)}, kAllKeys); }
void add_into(TensorImpl* a, TensorImpl* b) {
  call_role_into(Role::kAdd, {tensor_value(a), tensor_value(b)}, tensor_value(a), kAllKeys);
}
Tensor sum(TensorImpl* x, Shape axes) { return call_role(Role::kSum, {tensor_value(x), value(axes)}, kAllKeys); }
Tensor full(Shape shape, const bp_value& fill, bp_dtype dtype, bp_device device, uint64_t mask) {
  return call_role(Role::kFull, {value(shape), fill, dtype_value(dtype), value(device)}, mask);
}

Tensor copy(TensorImpl* x, uint64_t mask) { return call_role(Role::kCopy, {tensor_value(x)}, mask); }
Tensor cast(TensorImpl* x, bp_dtype dtype, uint64_t mask) {
  return call_role(Role::kCast, {tensor_value(x), dtype_value(dtype)}, mask);
}
void copy_into(const bp_value& x, const bp_value& target, uint64_t mask) {
  call_role_into(Role::kCopy, {x}, target, mask);
}
void cast_into(TensorImpl* x, TensorImpl* target, uint64_t mask) {
  if (x->dtype == target->dtype) return copy_into(tensor_value(x), tensor_value(target), mask);
  call_role_into(Role::kCast, {tensor_value(x), dtype_value(target->dtype)}, tensor_value(target), mask);
}

Tensor expand(TensorImpl* x, Shape shape, uint64_t mask) {
  return call_role(Role::kExpand, {tensor_value(x), value(shape)}, mask);
}
Tensor permute(TensorImpl* x, Shape axes, uint64_t mask) {
  return call_role(Role::kPermute, {tensor_value(x), value(axes)}, mask);
}
Tensor reshape(TensorImpl* x, Shape shape, uint64_t mask) {
  return call_role(Role::kReshape, {tensor_value(x), value(shape)}, mask);
}
Tensor select(TensorImpl* x, int64_t axis, int64_t index, uint64_t mask) {
  return call_role(Role::kSelect, {tensor_value(x), value(axis), value(index)}, mask);
}
Tensor concat(std::span<bp_tensor* const> pieces, uint64_t mask) {
  bp_value list{};
  list.tag = BP_TAG_TENSOR_LIST;
  list.count = static_cast<uint32_t>(pieces.size());
  list.u.tensors = pieces.data();
  return call_role(Role::kConcat, {list}, mask);
}

Tensor repeated(TensorImpl* x, int64_t size) {
  int64_t shape[kMaxRank + 1] = {size};
  std::copy_n(x->dl.shape, x->dl.ndim, shape + 1);
  return expand(x, {shape, static_cast<size_t>(x->dl.ndim) + 1});
}

}  // namespace backplane::core::roles
