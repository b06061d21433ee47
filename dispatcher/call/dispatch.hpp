// The call path: from an op handle and values to the slot of the op's plan that handles the call.
//
// One scan of the operands gives the keys that intercept. Without any, the fast path may serve the call; else the
// plan's slot of the highest key handles it and calls on below, down to the device's slot. All functions here throw
// Error; the C entry points (host_table.cpp, call_packed) turn that into a status at the edge. They also enter the call
// (CallGuard). Callers of a function of this header must have done so: plans are read below.
#pragma once

#include "call/operands.hpp"
#include "memory/process/thread_state.hpp"
#include "registry/registry.hpp"

namespace backplane::core {

// A call on its way down. `args` is of full length, with defaults filled in.
struct Call {
  const OpEntry& op;
  const bp_value* args;
  int32_t n_args;
  bp_value* outs;
  int32_t n_outs;
  uint64_t mask;  // keys that may still intercept
};

// Called for each copy between devices; the tape's, by a static initialiser.
using DeviceCopyHook = void (*)(const Tensor& from, const Tensor& to);
extern constinit DeviceCopyHook device_copy_hook;

// Fills in defaults and dispatches.
void call(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs,
          uint64_t mask = kInnerKeys);
// From an edge, what the fast path has declined; of as many arguments and results as the op has.
void call_slow(const OpEntry& op, const bp_value* args, bp_value* outs);
// A call with all its arguments and slots: of a handler that calls on below.
void dispatch(const Call& call);

// A record of a newer registry may be called with fewer arguments: the missing last ones take their defaults. Writes
// all of them to `full` (room for kMaxArgs) and returns how many.
int32_t fill_defaults(const OpRecord& record, const bp_value* args, int32_t n_args, bp_value* full);

// One tensor result; the caller owns it.
TensorImpl* call_one(const OpEntry& op, const bp_value* args, int32_t n_args, uint64_t mask = kInnerKeys);

// Excludes keys on this thread for a scope.
class ExcludeKeys {
 public:
  explicit ExcludeKeys(uint64_t keys) : saved_(thread_state.excluded_keys) { thread_state.excluded_keys |= keys; }
  ~ExcludeKeys() { thread_state.excluded_keys = saved_; }
  ExcludeKeys(const ExcludeKeys&) = delete;

 private:
  uint64_t saved_;
};

inline bp_value tensor_value(TensorImpl* tensor) {
  bp_value v{};
  v.tag = BP_TAG_TENSOR;
  v.u.t = tensor;
  return v;
}

// A value that owns the reference.
inline bp_value owned_value(Tensor tensor) { return tensor_value(impl(tensor.detach_handle())); }

// Releases what empty slots received, for a call that failed half-way.
void release_outputs(bp_value* outs, int32_t n_outs, const bp_value* before);

// Forces every op that has both a kernel and a decomposition through the latter; native formulas on or off. For laws.
extern std::atomic<bool> force_decomposition;
extern std::atomic<bool> native_formulas;

struct Counters {
  std::atomic<uint64_t> kernels{0}, decompositions{0}, host_fallbacks{0}, batch_loops{0};
  std::atomic<bool> batch_loop_allowed{true};
};
extern Counters counters;

}  // namespace backplane::core
