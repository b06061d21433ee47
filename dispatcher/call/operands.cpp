#include "call/operands.hpp"

namespace backplane::core {

namespace {

// For an argument that is not a tensor. Numbers are taken if all operands have one shape and dtype, and an absent
// tensor if the op does not compute with it.
uint32_t traits_of_other(const OpEntry& op, const bp_value& v, int32_t i) {
  uint32_t traits = ~0u;
  if (is_special_number(v) || v.tag == BP_TAG_TENSOR_LIST) traits &= ~Operands::kPlain;
  if (v.tag == BP_TAG_TENSOR_LIST || i >= 64 || !(op.record->tensor_args >> i & 1)) return traits;
  const bool number = op.fast_path == FastPath::kLikeOperands && (v.tag == BP_TAG_FLOAT || v.tag == BP_TAG_INT);
  const bool left_out = v.tag == BP_TAG_ABSENT && !(op.record->needed_tensors >> i & 1) && i >= op.record->n_alike;
  if (v.tag != BP_TAG_ABSENT) traits &= ~Operands::kNoNumbers;
  if (!number && !left_out) traits &= ~Operands::kPlain;
  return traits;
}

}  // namespace

// A view's keys after the question: another reader may be giving it its history.
uint64_t keys_of_views(const bp_value* values, int32_t n) {
  uint64_t keys = 0, stale = 0;
  each_tensor(values, n, [&](const TensorImpl* t) {
    if (is_stale(*t)) stale = kViewKey;
    keys |= t->keys_seen();
  });
  return (keys & ~kViewKey) | stale;
}

void read_any_operands(const OpEntry& op, const bp_value* args, Operands& sum) {
  for (int32_t i = 0; i < op.n_args; ++i)
    if ((args[i].tag == BP_TAG_TENSOR || (args[i].tag == BP_TAG_TENSOR_LIST && args[i].count)) && !args[i].u.p)
      return void(sum.traits = 0);  // the slow path refuses it
  each_tensor(args, op.n_args, [&](TensorImpl* t) { sum.keys |= t->keys_seen(); });
  for (int32_t i = 0; i < op.n_args; ++i) {
    if (args[i].tag != BP_TAG_TENSOR) {
      sum.traits &= traits_of_other(op, args[i], i);
      continue;
    }
    const TensorImpl& t = *impl(args[i].u.t);
    sum.traits &= t.flags | Operands::kPlain | Operands::kNoNumbers;
    if (!sum.first) sum.first = &t;
    const TensorImpl& x = *sum.first;
    if (!t.storage || !same_device(t, x) || (t.dtype != x.dtype && i < op.record->n_alike) ||
        (op.fast_path == FastPath::kLikeOperands && !same_shape(t, x)))
      sum.traits &= ~Operands::kPlain;
  }
}

}  // namespace backplane::core
