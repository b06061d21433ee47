// Running one formula of an op's record on the call path: its calls go through dispatch and see the keys that are
// given.
//
// The caller has entered the call (CallGuard). Results own their contents, as for evaluate(); throws Error.
#pragma once

#include "call/dispatch.hpp"
#include "record/evaluator.hpp"

namespace backplane::core {

// `inputs.frame` is made here.
void run_formula(const OpEntry& op, const bp_formula& formula, FormulaInputs inputs, bp_value* results,
                 uint64_t keys = kInnerKeys);

// The base of a view, whose arguments these are, with `piece` written where the view looks: its PUT formula.
Tensor run_put(const OpEntry& op, const bp_formula& put, const bp_value* args, const bp_value& piece);

// Where a call runs whose arguments are numbers alone: with the arguments of the formula that makes it, or where the
// node of a graph says, else on the default device.
bp_device device_of_numbers();

// Until it ends, this thread's calls of numbers alone run on `device`.
class NumbersOn {
 public:
  explicit NumbersOn(bp_device device);
  ~NumbersOn();
  NumbersOn(const NumbersOn&) = delete;

 private:
  const bp_device before_;
};

}  // namespace backplane::core
