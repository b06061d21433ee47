// The call path: from an op handle and values to the key, level or kernel that handles the call.
//
// `dispatch` asks which keys intercept, highest first; with none left the call goes to the device. All functions
// here throw Error; the C entry points (host_table.cpp, call_packed) turn that into a status at the edge. They also
// enter the call (CallGuard), which whoever calls a function of this header must have done: rows are read below.
#pragma once

#include "memory/thread_state.hpp"
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

struct Operands;  // fast_call.hpp
// Who handles the calls that the core's own keys intercept: the layers above, which put themselves here by static
// initialisers.
struct CallHandlers {
  void (*level)(const Call& call);                                // kLevelKey, kCreationKey
  void (*tape)(const Call& call);                                 // kTapeKey
  bool (*tape_fast)(const Call& call, const Operands& operands);  // the same by the short way; false: it declines
  void (*graph)(const Call& call);                     // an op that takes a function, of which every level is told
  void (*move)(const Tensor& from, const Tensor& to);  // a copy between devices was made
};
extern constinit CallHandlers call_handlers;

// Fills in defaults and dispatches.
void call(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs,
          uint64_t mask = ~uint64_t{0});
// As `call` with one result, where the caller gives up the tensors args[i] of the set bits: bp_host::call_op_donating.
// reuse.cpp.
void call_spending(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* out, uint64_t mask,
                   uint64_t spent);
void dispatch(const Call& call);
void call_on_device(const Call& call);  // device_call.cpp
void call_decomposition(
    const Call& call);  // decomposition.cpp: evaluates the DECOMPOSE formula; its calls see call.mask
void call_key(const Call& call, uint64_t key);

// A record of a newer registry may be called with fewer arguments: the missing last ones take their defaults. Writes
// all of them to `full` (room for kMaxArgs) and returns how many.
int32_t fill_defaults(const OpRecord& record, const bp_value* args, int32_t n_args, bp_value* full);

// One tensor result; the caller owns it.
TensorImpl* call_one(const OpEntry& op, const bp_value* args, int32_t n_args, uint64_t mask = ~uint64_t{0});

// Excludes keys on this thread for a scope.
class ExcludeKeys {
 public:
  explicit ExcludeKeys(uint64_t keys) : saved_(thread_state.excluded_keys) { thread_state.excluded_keys |= keys; }
  ~ExcludeKeys() { thread_state.excluded_keys = saved_; }
  ExcludeKeys(const ExcludeKeys&) = delete;

 private:
  uint64_t saved_;
};

// Visits the tensors among values, lists included.
template <class Visit>
inline void each_tensor(const bp_value* values, int32_t n, Visit visit) {
  for (int32_t i = 0; i < n; ++i) {
    const bp_value& v = values[i];
    if (v.tag == BP_TAG_TENSOR) {
      visit(impl(v.u.t));
    } else if (v.tag == BP_TAG_TENSOR_LIST) {
      for (uint32_t k = 0; k < v.count; ++k)
        if (v.u.tensors[k]) visit(impl(v.u.tensors[k]));
    }
  }
}

inline bp_value tensor_value(TensorImpl* tensor) {
  bp_value v{};
  v.tag = BP_TAG_TENSOR;
  v.u.t = tensor;
  return v;
}

// Releases what empty slots received, for a call that failed half-way.
void release_outputs(bp_value* outs, int32_t n_outs, const bp_value* before);
// Is the op's name, without its namespace, a word of the message?
bool names_op(std::string_view message, const OpEntry& op);
// Turns a failing status of a plugin's function into an Error with the thread's message.
[[noreturn]] void throw_status(bp_status status, const OpEntry& op, const char* who);

// Forces every op that has both a kernel and a decomposition through the latter; native formulas on or off. For laws.
extern std::atomic<bool> force_decomposition;
extern std::atomic<bool> native_formulas;

struct Counters {
  std::atomic<uint64_t> kernels{0}, decompositions{0}, host_fallbacks{0}, batch_loops{0};
  std::atomic<bool> host_fallback_allowed{true}, batch_loop_allowed{true};
};
extern Counters counters;

}  // namespace backplane::core
