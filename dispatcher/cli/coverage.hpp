// What an op's record says of each transform: the cells of `backplane ops --coverage`.
//
// Pure functions over the registry; any thread may call them.
#pragma once

#include "backplane/op.hpp"

namespace backplane::cli {

enum class Cell {
  kExecuted,  // stated, derived or by decomposition, and something runs it in this version
  kChecked,   // likewise, verified when registered; nothing runs it yet
  kExempted,  // the law does not apply: no differentiable result, no shape before the values are known
  kLoop,      // of batching: row by row, counted
  kRefused,   // no rule, in writing, with its reason
  kMissing    // a hole: codegen lets none through, an op of a plugin may have one
};
inline constexpr const char* kCellNames[] = {"executed", "checked", "exempted", "loop", "refused", "missing"};
inline constexpr size_t kCellCount = 6;

inline constexpr const char* kRules[] = {"vjp", "jvp", "2nd", "batch", "meta", "trace"};
inline constexpr size_t kRuleCount = 6;

// In the order of kRules.
Cell rule_cell(const bp_op_def& op, size_t rule);

}  // namespace backplane::cli
