// The dtype of floats that name none: of the block that a context is in (default_dtype), or of the process.
//
// The core's own is float32, and graphs and formulas know no other: where another is set, a call in which that dtype
// would be taken states it before it leaves here, as a dtype argument or by operands cast to it.
#pragma once

#include <atomic>
#include <vector>

#include "backplane/op.hpp"
#include "bindings/interpreter/context_settings.hpp"

namespace backplane::python {

inline bp_dtype default_float() noexcept {
  const bp_dtype of_block = g_unusual.load(std::memory_order_relaxed) ? float_of_block() : bp_dtype{BP_DTYPE_NONE};
  return of_block != BP_DTYPE_NONE ? of_block : g_default_float.load(std::memory_order_relaxed);
}
inline bp_dtype default_complex() noexcept {
  return default_float() == BP_FLOAT64 ? bp_dtype{BP_COMPLEX128} : bp_dtype{BP_COMPLEX64};
}
// With the interpreter lock. From here on, the thread has the settings of its context.
inline bool is_core_default() noexcept {
  if (g_unusual.load(std::memory_order_relaxed) == 0) [[likely]]
    return true;
  follow_context();
  return default_float() == BP_FLOAT32;
}

// A call's arguments with the default stated where it is taken. Throws Error.
class StatedArguments {
 public:
  StatedArguments(OpHandle op, const bp_value* args, int32_t n_args);

  const bp_value* values() const noexcept { return values_.data(); }
  int32_t count() const noexcept { return static_cast<int32_t>(values_.size()); }

 private:
  bool state_result(const bp_result_dtype& rule, bool takes_float, bool complex);
  void state_operands(const bp_op_def& def, uint64_t promoted);

  std::vector<bp_value> values_;
  std::vector<Tensor> made_;
};

}  // namespace backplane::python
