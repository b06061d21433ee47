#include "tape/sums.hpp"

#include <algorithm>

#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"
#include "levels/level.hpp"
#include "memory/tensors/overlap.hpp"

namespace backplane::core {
namespace {

bool calls_are_taken() { return thread_state.level && thread_state.level->every_call; }

// Of what a formula reads: of some tensors that is the shape alone, and they have no memory.
bool all_plain(const bp_value* values, int32_t n, bool recorded) {
  bool plain = true;
  each_tensor(values, n, [&](TensorImpl* t) { plain = plain && !t->wrapper && (!recorded || !wants_grad(t)); });
  return plain;
}

// Of a view, that is the same part of the sum.
bool add_to_view(const OpEntry& op, const FormulaInputs& inputs, const Tensor& sum) {
  const bp_value& g = inputs.cotangents[0];
  if (g.tag != BP_TAG_TENSOR || g.u.t->nbytes >= sum.get()->nbytes) return false;
  bp_value args[kMaxArgs];
  std::copy_n(inputs.args, op.n_args, args);
  args[op.record->def.alias] = value(sum);
  const Tensor part = Tensor::adopt(call_one(op, args, op.n_args));
  if (part.get()->dtype != g.u.t->dtype || !same_shape(*part.get(), *g.u.t) || self_overlaps(*part.get())) return false;
  roles::add_into(impl(part), impl(g.u.t));
  return true;
}

bool is_zero(const OpRecord& record, const PlanNode& node) {
  if (node.kind != BP_NODE_CONST) return false;
  const bp_value& v = record.def.program->consts[static_cast<size_t>(node.imm)];
  return (v.tag == BP_TAG_INT && v.u.i == 0) || (v.tag == BP_TAG_FLOAT && v.u.f == 0.0);
}

// Does the formula add to zeros? Then its last call may add to the sum in their place.
bool adds_to_zeros(const OpEntry& op, const bp_formula& formula) {
  const OpRecord& record = *op.record;
  if (!ends_in_addition(record, formula)) return false;
  const FormulaPlan& plan = record.plan(formula);
  const PlanNode* last = final_call(plan);
  const PlanNode& start = input_node(plan, *last, 0);
  const OpEntry* adding = op_entry(record.calls[static_cast<size_t>(last->imm)]);
  const OpEntry* making = op_entry(record.calls[static_cast<size_t>(start.imm)]);
  return (adding->flags & kAddsToFirst) && making == &role_op(Role::kFull) && start.n_inputs > 1 &&
         is_zero(record, input_node(plan, start, 1));
}

}  // namespace

bool is_plain(const TensorImpl& tensor, bool recorded) {
  if (tensor.wrapper || !tensor.storage) return false;
  return !recorded || !wants_grad(const_cast<TensorImpl*>(&tensor));
}

bool may_add_into(const Tensor& sum, bool recorded) {
  const TensorImpl& t = *impl(sum);
  return t.refs.load(std::memory_order_acquire) == 1 && is_plain(t, recorded) && !t.view &&
         t.storage->refs.load(std::memory_order_acquire) == 1 && t.storage->owner != bp_storage::Owner::kExternal &&
         !t.storage->read_only && is_contiguous(t) && !(t.flags & kRepeats) && !calls_are_taken();
}

bool add_part(const OpEntry& op, uint32_t arg, const bp_formula& formula, const FormulaInputs& inputs,
              const Tensor& sum, bool recorded) {
  if (!all_plain(inputs.args, op.n_args, recorded) || !all_plain(inputs.cotangents, op.n_results, recorded) ||
      !all_plain(inputs.outs, op.n_results, recorded))
    return false;
  if (op.flags & BP_OP_VIEW) return arg == static_cast<uint32_t>(op.record->def.alias) && add_to_view(op, inputs, sum);
  if (inputs.cotangents[0].tag != BP_TAG_TENSOR || inputs.cotangents[0].u.t->dtype != sum.dtype()) return false;
  link_entry(const_cast<OpEntry&>(op));
  if (!adds_to_zeros(op, formula)) return false;
  FormulaInputs into = inputs;
  into.into = sum.get();
  into.over_first = true;
  bp_value result{};
  run_formula(op, formula, into, &result);
  release(impl(result.u.t));
  return true;
}

}  // namespace backplane::core
