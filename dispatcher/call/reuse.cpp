// Calls whose caller donates some of the operands: an elementwise result may then take the memory of one, and an op
// with an in-place form the memory of its first argument.
//
// That is a formula's intermediate at its last use (evaluation.cpp, and the code that codegen writes). Only where
// nothing intercepts the call, so that nobody keeps the operand's value for later, and where nobody else holds the
// operand.
#include "call/reuse.hpp"

#include "call/fast_call.hpp"

#include "call/dispatch.hpp"
#include "call/operand_checks.hpp"
#include "call/result_shapes.hpp"
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

// May the op write its first argument, which is donated? Only into a result of that form, of a call that nothing
// intercepts.
bool may_take_first(const OpEntry& op, const bp_value* args, int32_t n_args, uint64_t mask, uint64_t donated) {
  if (op.fast_path == FastPath::kLikeOperands || !(op.flags & BP_OP_INPLACE) || !(donated & 1) || n_args != op.n_args ||
      op.n_results != 1)
    return false;
  if (args[0].tag != BP_TAG_TENSOR || thread_state.included_keys != 0) return false;
  const TensorImpl& first = *impl(args[0].u.t);
  if (first.wrapper || !is_sole_owner(first)) return false;
  uint64_t keys = 0;
  each_tensor(args, n_args, [&](TensorImpl* t) { keys |= keys_now(t); });
  if (keys != 0) return false;
  bp_value out{};
  const Call call{op, args, n_args, &out, 1, mask};
  const bp_dtype compute = compute_dtype(*op.record, args, n_args);
  if (result_dtype(*op.record, args, n_args, 0, compute) != first.dtype) return false;
  ResultShapes shapes(call);
  const ShapeResult& shape = shapes.of(0);
  return shape.ndim == first.dl.ndim && std::equal(shape.sizes, shape.sizes + shape.ndim, first.dl.shape);
}

}  // namespace

void call_donating(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* out, uint64_t mask,
                   uint64_t donated) {
  const Plan& plan = op.plan();
  if (out->flags == 0 && may_take_first(op, args, n_args, mask, donated)) {
    retain(impl(args[0].u.t));
    *out = args[0];
    out->flags = BP_VALUE_GIVEN;
    try {
      call(op, args, n_args, out, 1, mask);
    } catch (...) {
      release(impl(args[0].u.t));
      *out = {};
      throw;
    }
    out->flags = 0;
    return;
  }
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
