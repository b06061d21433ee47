// Numbers in the positions of tensors that a call of a formula would meet without a tensor, as in log(x) where x is
// 0.1.
//
// Such a call computes in the default dtype, float32. Beside a float64 tensor the number counts in float64: there the
// formula reads a tensor of that dtype in its place.
#pragma once

#include <vector>

#include "call/dispatch.hpp"
#include "record/builtin_numbers.hpp"
#include "record/evaluator.hpp"
#include "record/op_record.hpp"

namespace backplane::core {

// The inputs of one run. Borrows `inputs`; holds the references that it makes. The entry is linked.
class LonelyNumbers {
 public:
  LonelyNumbers(const OpEntry& op, const bp_formula& formula, const FormulaInputs& inputs, uint64_t keys);
  LonelyNumbers(const LonelyNumbers&) = delete;

  // Is there a number in the position of a tensor that promotes?
  static bool possible(const OpEntry& op, const FormulaInputs& inputs) {
    for (uint64_t bits = promoting_tensors(*op.record); inputs.args && bits != 0; bits &= bits - 1)
      if (is_number(inputs.args[__builtin_ctzll(bits)])) return true;
    return false;
  }
  // Bit per argument that is a Tensor and takes part in promotion; Scalars may do so, too.
  static uint64_t promoting_tensors(const OpRecord& op) { return op.def.promote & op.tensor_args; }
  const FormulaInputs& get() const { return inputs_; }

 private:
  FormulaInputs inputs_;
  bp_value args_[kMaxArgs];
  std::vector<Tensor> held_;
};

}  // namespace backplane::core
