// A formula that runs in float32 on half floats (BP_FORMULA_WIDE): its inputs are cast before, its results after.
//
// The casts are calls like the formula's: levels, the tape and graphs see them.
#pragma once

#include <vector>

#include "call/dispatch.hpp"
#include "record/evaluator.hpp"
#include "record/op_record.hpp"

namespace backplane::core {

// The inputs of one run. Borrows `inputs`; holds the references that it makes.
class WideInputs {
 public:
  WideInputs(const OpEntry& op, const bp_formula& formula, const FormulaInputs& inputs, uint64_t keys);
  WideInputs(const WideInputs&) = delete;

  // Does the formula read a half float? Otherwise it runs on the inputs as they are.
  static bool needed(const OpEntry& op, const bp_formula& formula, const FormulaInputs& inputs);

  const FormulaInputs& get() const { return wide_; }
  // Casts what the formula gave, in place. Where that fails, the results own nothing.
  void round(bp_value* results) const;

 private:
  const bp_value* widened(const bp_value* values, size_t count, uint64_t read, bp_value* out);
  bp_dtype wanted(size_t result) const;
  void round(bp_value* results, size_t count) const;
  void round(bp_tensor*& result, bp_dtype dtype) const;

  const OpEntry& op_;
  const bp_formula& formula_;
  const FormulaInputs& narrow_;
  FormulaInputs wide_;
  uint64_t keys_;
  bp_value args_[kMaxArgs], outs_[kMaxResults], cotangents_[kMaxResults], tangents_[kMaxArgs];
  std::vector<std::vector<bp_tensor*>> lists_;
  std::vector<Tensor> held_;
};

}  // namespace backplane::core
