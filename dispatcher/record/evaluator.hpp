// Evaluates the formulas of a record over their plans: each node at most once, one branch of an IF.
//
// Ops are called through `Caller`, so the evaluator does not depend on dispatch or devices (the same evaluator serves
// shape formulas, which call no op). Tensors that a formula makes are released when evaluation ends, except the
// results. A formula's native function, where it has one and `use_native` is set, replaces the walk; with
// BP_FORMULA_NATIVE_ONLY it always does.
#pragma once

#include "record/caller.hpp"
#include "record/op_record.hpp"

namespace backplane::core {

struct FormulaInputs {
  const bp_value* args = nullptr;  // defaults filled in
  const bp_value* outs = nullptr;
  const bp_value* cotangents = nullptr;  // ABSENT: a symbolic zero
  const bp_value* tangents = nullptr;
  const bool* batched = nullptr;  // per argument
  uint64_t needs = ~uint64_t{0};
  const bp_frame* frame = nullptr;  // passed to Caller::call and to native functions
  // Of a formula that ends in a call (final_call), or null: the tensor that this call is to write. `over_first`: it is
  // the call's first argument, too, in place of what the formula has there.
  bp_tensor* into = nullptr;
  bool over_first = false;
};

// Writes one owned value (owned_value.hpp) per root; with BP_FORMULA_TUPLE per target of a VJP, or per result of
// another rule. A symbolic zero comes out as ABSENT, and a number that was passed for a tensor may come out as that
// number. Of a VJP's roots only those are computed whose target is in `needs`; the others are ABSENT. Throws Error, and
// then `results` own nothing. `formula` must be one of op.formulas and op must be linked.
void evaluate(const OpRecord& op, const bp_formula& formula, const FormulaInputs& inputs, bp_value* results,
              bool use_native = true);

// The int list of a SHAPE formula's root for `result`. `out` has room for 64.
void evaluate_ints(const OpRecord& op, const bp_formula& formula, uint32_t result, const FormulaInputs& inputs,
                   int64_t* out, int32_t* count);

// The call that gives the formula's one result, or its part for argument or result `root`, at most fitted to the
// argument; nullptr: it does not end in a call with arguments.
const PlanNode* final_call(const FormulaPlan& plan, size_t root = 0);
// Input k of a node.
inline const PlanNode& input_node(const FormulaPlan& plan, const PlanNode& node, uint32_t k) {
  return plan.nodes[plan.inputs[node.first_input + k] & ~kLastUse];
}

// Does the formula, of one argument, end in a call whose last argument is `true` and whose first is another call that
// nothing else reads, as in add_at(zeros(…), …, true)?
bool ends_in_addition(const OpRecord& op, const bp_formula& formula);

inline const FreeNames& free_names(const OpRecord& op, const bp_formula& formula) { return op.plan(formula).free; }

}  // namespace backplane::core
