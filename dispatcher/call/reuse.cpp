// Calls whose caller donates some of the operands: an elementwise result may then take the memory of one.
//
// That is a formula's intermediate at its last use (evaluation.cpp, and the code that codegen writes). Only where
// nothing intercepts the call, so that nobody keeps the operand's value for later, and where nobody else holds the
// operand.
#include "call/reuse.hpp"

#include "call/fast_call.hpp"

#include "call/dispatch.hpp"
#include "record/dtype_rules.hpp"

namespace backplane::core {
namespace {

// Does nobody else see its memory? A view's is its base's.
bool is_sole_owner(const TensorImpl& t) {
  return t.refs.load(std::memory_order_acquire) == 1 && !t.view && !t.autograd &&
         t.storage->refs.load(std::memory_order_acquire) == 1 && t.storage->owner != bp_storage::Owner::kExternal &&
         !t.storage->read_only;
}

TensorImpl* donated_operand(const OpEntry& op, const TensorImpl& first, const bp_value* args, int32_t n_args,
                            uint64_t donated) {
  if (result_dtype(*op.record, args, n_args, 0, first.dtype) != first.dtype) return nullptr;
  for (int32_t i = 0; i < n_args; ++i)
    if ((donated >> i & 1) && args[i].tag == BP_TAG_TENSOR && is_sole_owner(*impl(args[i].u.t)))
      return impl(args[i].u.t);
  return nullptr;
}

}  // namespace

void call_donating(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* out, uint64_t mask,
                   uint64_t donated) {
  const Plan& plan = op.plan();
  if (op.fast_path != FastPath::kLikeOperands || n_args != op.n_args || out->flags != 0 || must_decompose(op))
    return call(op, args, n_args, out, 1, mask);
  const Operands operands = read_operands<FastPath::kLikeOperands>(op, args);
  const bool intercepted = (thread_state.included_keys | operands.keys) != 0;
  const FastRow* row = intercepted ? nullptr : fast_row_for(plan, n_args, operands);
  TensorImpl* over = row && row->inplace ? donated_operand(op, *operands.first, args, n_args, donated) : nullptr;
  if (!over) return call(op, args, n_args, out, 1, mask);
  retain(over);
  *out = tensor_value(over);
  out->flags = BP_VALUE_GIVEN;
  run_fast_row(op, *row, args, n_args, out, mask, operands);
}

}  // namespace backplane::core
