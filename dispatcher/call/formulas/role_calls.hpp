// The ops that the core itself calls, which the registry names by their roles, with typed arguments.
//
// Ordinary calls, at the levels that are active and with the keys of `mask`: they throw what the op throws.
#pragma once

#include "backplane/tensor.hpp"
#include "call/dispatch.hpp"

namespace backplane::core::roles {

inline constexpr uint64_t kAllKeys = kInnerKeys;

Tensor add(TensorImpl* a, TensorImpl* b);
void add_into(TensorImpl* a, TensorImpl* b);  // a += b
Tensor sum(TensorImpl* x, Shape axes);
// `fill`: a number.
Tensor full(Shape shape, const bp_value& fill, bp_dtype dtype, bp_device device, uint64_t mask = kAllKeys);

Tensor copy(TensorImpl* x, uint64_t mask = kAllKeys);
Tensor cast(TensorImpl* x, bp_dtype dtype, uint64_t mask = kAllKeys);
// Into `target`, a given output; the second casts where the dtypes differ.
void copy_into(const bp_value& x, const bp_value& target, uint64_t mask);
void cast_into(TensorImpl* x, TensorImpl* target, uint64_t mask);

Tensor expand(TensorImpl* x, Shape shape, uint64_t mask = kAllKeys);
Tensor permute(TensorImpl* x, Shape axes, uint64_t mask = kAllKeys);
Tensor reshape(TensorImpl* x, Shape shape, uint64_t mask = kAllKeys);
Tensor select(TensorImpl* x, int64_t axis, int64_t index, uint64_t mask = kAllKeys);
// Along axis 0.
Tensor concat(std::span<bp_tensor* const> pieces, uint64_t mask = kAllKeys);

// `size` rows, each of them x.
Tensor repeated(TensorImpl* x, int64_t size);

}  // namespace backplane::core::roles
