// What evaluation needs of one formula, laid out when its record is copied: the nodes that its roots reach, renumbered
// densely in topological order, and facts that do not depend on values.
//
// A plan holds no pointer into the record, and never changes. Building verifies what only the whole formula shows:
// which inputs its rule may read, and that every variable is bound, by one MAP or FOLD alone.
#pragma once

#include <cstdint>
#include <vector>

#include "backplane/abi/op.h"

namespace backplane::core {

struct OpRecord;

// The inputs that a formula reads, IFs included. They are saved for backward.
struct FreeNames {
  uint64_t args = 0;  // tensors whose data are read; shape, dtype and device do not count
  uint64_t outs = 0;
  uint64_t arg_metadata = 0;  // only their shape, dtype or device is read
  uint64_t out_metadata = 0;
};

// Beyond the kinds of the contract: builtins whose second input is evaluated only if the first does not decide.
inline constexpr uint16_t kPlanAnd = 0x101;
inline constexpr uint16_t kPlanOr = 0x102;

// Set on an input of a CALL or FIT: nobody reads that node afterwards, so a tensor that it owns can be released.
inline constexpr uint32_t kLastUse = 0x80000000u;

struct PlanNode {
  uint16_t kind;
  uint16_t n_inputs;
  uint32_t first_input;  // into FormulaPlan::inputs
  int64_t imm;
  uint64_t wanted;     // CALL: bit i: result i is selected or passed on, whatever roots are asked for
  uint64_t variables;  // bit s: depends on variable slot s
};

// A step of a plan with branches.
struct PlanStep {
  enum Kind : uint8_t {
    kCompute,  // `node`, unless it has a value
    kTake,     // the value of `other` as that of `node`, an IF
    kIfTrue,   // go to step `other` if the value of `node` is true
    kIfFalse,
    kGo  // go to step `other`
  };
  Kind kind;
  uint32_t node;
  uint32_t other;
};

struct FormulaPlan {
  std::vector<PlanNode> nodes;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> roots;
  bool straight = true;  // no IF, `and`, `or`, MAP or FOLD: every node is needed, in order
  // The nodes in the order in which a run by demand computes them (plan_steps.hpp): one list for all roots, of a shape
  // rule one per root. Without lists, the plan is straight or runs by demand.
  std::vector<std::vector<PlanStep>> steps;
  FreeNames free;
};

// Throws Error(BP_ERROR_VALUE). The record's program and builtins have been verified.
FormulaPlan make_plan(const OpRecord& op, const bp_formula& formula);

}  // namespace backplane::core
