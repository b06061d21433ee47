#include "call/run_formula.hpp"

namespace backplane::core {

void run_formula(const OpEntry& op, const bp_formula& formula, FormulaInputs inputs, bp_value* results, uint64_t keys) {
  link_entry(const_cast<OpEntry&>(op));
  bp_frame frame = frame_of(*op.record);
  frame.keys = keys;
  inputs.frame = &frame;
  evaluate(*op.record, formula, inputs, results, native_formulas.load(std::memory_order_relaxed));
}

Tensor run_put(const OpEntry& op, const bp_formula& put, const bp_value* args, const bp_value& piece) {
  FormulaInputs inputs;
  inputs.args = args;
  inputs.cotangents = &piece;
  bp_value result{};
  run_formula(op, put, inputs, &result);
  return Tensor::adopt(result.u.t);
}

}  // namespace backplane::core
