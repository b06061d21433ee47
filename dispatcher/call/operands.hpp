// The one scan of a call's arguments: their keys, and what the fast path needs to know of them.
#pragma once

#include "memory/tensors/history.hpp"
#include "registry/registry.hpp"

namespace backplane::core {

// What the operands of a call have in common, and the keys that they carry.
struct Operands {
  const TensorImpl* first = nullptr;
  uint64_t keys = 0;
  uint32_t traits = ~0u;  // BP_TENSOR_* that all have, and those below

  bool plain() const { return traits & kPlain; }
  bool numbers() const { return !(traits & kNoNumbers); }

  // Of one device, dtype and, where the op wants that, shape.
  static constexpr uint32_t kPlain = 1u << 31;
  static constexpr uint32_t kNoNumbers = 1u << 30;  // none stands in a tensor position
  static_assert(BP_TENSOR_CONTIGUOUS < kNoNumbers && BP_TENSOR_NUMBER < kNoNumbers && BP_TENSOR_WRAPPER < kNoNumbers);
};

// Visits the tensors among values, lists included.
template <class Visit>
inline void each_tensor(const bp_value* values, int32_t n, Visit visit) {
  for (int32_t i = 0; i < n; ++i) {
    const bp_value& v = values[i];
    if (v.tag == BP_TAG_TENSOR) {
      visit(impl(v.u.t));
    } else if (v.tag == BP_TAG_TENSOR_LIST) {
      for (uint32_t k = 0; k < v.count; ++k)
        if (v.u.tensors[k]) visit(impl(v.u.tensors[k]));
    }
  }
}

// The keys of tensors among which are views; kViewKey among them where one of these may have come to a history, which
// the slow path finds out.
uint64_t keys_of_views(const bp_value* values, int32_t n);

// An int that only uint64 holds, or no dtype; a complex number: how it reaches a kernel is the slow path's to say.
inline bool is_special_number(const bp_value& v) noexcept {
  return (v.flags & (BP_VALUE_UINT64 | BP_VALUE_BEYOND)) || v.tag == BP_TAG_COMPLEX;
}

// Of any arguments. Into an argument of its own, so that what read_operands gives needs no memory.
void read_any_operands(const OpEntry& op, const bp_value* args, Operands& sum);
inline Operands read_any_operands(const OpEntry& op, const bp_value* args) {
  Operands sum;
  read_any_operands(op, args, sum);
  return {sum.first, sum.keys, sum.traits};
}

// The same, written out for the most common operands: tensors that are alike, the first argument among them.
template <FastPath kPath>
[[gnu::always_inline]] inline Operands read_operands(const OpEntry& op, const bp_value* args) {
  if (args[0].tag != BP_TAG_TENSOR) [[unlikely]]
    return read_any_operands(op, args);
  const TensorImpl& first = *impl(args[0].u.t);
  uint64_t keys = first.keys_seen();
  uint32_t traits = first.flags | Operands::kPlain | Operands::kNoNumbers;
  if (kPath == FastPath::kView) return {&first, keys, traits};  // its only tensor
  for (int32_t i = 1; i < op.n_args; ++i) {
    const bp_value& v = args[i];
    if (v.tag != BP_TAG_TENSOR) {
      if (v.tag != BP_TAG_TENSOR_LIST && !is_special_number(v) && !(op.record->tensor_args >> (i & 63) & 1)) continue;
      return read_any_operands(op, args);
    }
    const TensorImpl& t = *impl(v.u.t);
    keys |= t.keys_seen();
    traits &= t.flags | Operands::kPlain | Operands::kNoNumbers;
    if (!t.storage || !same_device(t, first) || (t.dtype != first.dtype && i < op.record->n_alike) ||
        (kPath == FastPath::kLikeOperands && !same_shape(t, first)))
      return read_any_operands(op, args);
  }
  return {&first, keys, traits};
}

}  // namespace backplane::core
