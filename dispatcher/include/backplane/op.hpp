// Finding and calling ops by handle: the interface on which the generated C++ functions, the Python module and
// the tools stand. An op handle is an index that is interned once and never reused in a process.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/abi/host.h"
#include "backplane/tensor.hpp"

namespace backplane {

using OpHandle = uint32_t;  // BP_NO_OP (abi/host.h): none

BACKPLANE_API OpHandle find_op(std::string_view full_name) noexcept;
// The core's own verified copy; lives as long as the process, of an op of a plugin or a program until it is registered
// again.
BACKPLANE_API const bp_op_def& op_def(OpHandle op);
// The same for as long as it is held.
BACKPLANE_API std::shared_ptr<const bp_op_def> hold_op_def(OpHandle op);
BACKPLANE_API std::vector<OpHandle> all_ops();

// The packed call. Out slots as abi/host.h says: empty slots (a zeroed bp_value) receive owned values. Missing last
// arguments take their defaults. Returns a status; the message is in last_error(). Never throws.
BACKPLANE_API bp_status call_packed(OpHandle op, const bp_value* args, int32_t n_args, bp_value* outs,
                                    int32_t n_outs) noexcept;
// The in-place variant: the result is written to args[0], whose dtype and shape stay.
BACKPLANE_API bp_status call_inplace(OpHandle op, const bp_value* args, int32_t n_args) noexcept;
BACKPLANE_API const char* last_error() noexcept;
// The tensors of a list that an out slot received, which is empty then; an absent element is an empty Tensor.
BACKPLANE_API std::vector<Tensor> take_list(bp_value& slot);
// Throws what a status and the thread's message say.
[[noreturn]] BACKPLANE_API void throw_last_error(bp_status status);

// One-result convenience: throws Error.
inline Tensor call(OpHandle op, std::initializer_list<bp_value> args) {
  bp_value out{};
  if (bp_status status = call_packed(op, args.begin(), static_cast<int32_t>(args.size()), &out, 1))
    throw_last_error(status);
  if (out.tag != BP_TAG_TENSOR) {
    take_list(out);
    throw Error(BP_ERROR_TYPE, "call: the op's result is a list of tensors; take it with call_packed and take_list");
  }
  return Tensor::adopt(out.u.t);
}

// What a call's results would be, by the entry's rules alone: nothing runs. Throws Error as the call would; a result
// whose shape depends on values is a NOT_IMPLEMENTED one. Arguments as for call_packed.
struct InferredResult {
  bp_dtype dtype;
  std::vector<int64_t> shape;
};
BACKPLANE_API std::vector<InferredResult> infer(OpHandle op, const bp_value* args, int32_t n_args);

// A number that is to be an element of `dtype`, of integers by its whole part. Throws BP_ERROR_OVERFLOW where an
// integer dtype does not hold it, BP_ERROR_DTYPE for a complex one in a real dtype; `place` begins the message.
BACKPLANE_API void check_number(bp_dtype dtype, const bp_value& number, const char* place);

// For every slot of the op: the rule, the registration that filled it, and the losers. For people.
BACKPLANE_API std::string explain(OpHandle op);

// How a call of the op reaches each backend that is open: "kernel", "decomposition", "function" (the op's argument
// runs), "view", "host fallback" or "none".
struct BackendRule {
  std::string backend;
  const char* rule;
};
BACKPLANE_API std::vector<BackendRule> backend_rules(OpHandle op);

// How vmap batches the op: "stated", "derived", "decomposition", "loop", "creation" (nothing to batch), "refused",
// "function" (by the rules of the function that it calls) or "missing".
BACKPLANE_API const char* batch_rule(OpHandle op);

// How calls reached devices since the process started (or the last reset).
struct CallCounts {
  uint64_t kernels = 0;
  uint64_t decompositions = 0;
  uint64_t host_fallbacks = 0;
  uint64_t batch_loops = 0;  // calls that vmap ran row by row
};
BACKPLANE_API CallCounts call_counts() noexcept;
BACKPLANE_API void reset_call_counts() noexcept;
// Host fallbacks are allowed by default; forbidden, they are missing-kernel errors. Returns the old setting.
BACKPLANE_API bool allow_host_fallback(bool allowed) noexcept;
// The same for the loops of entries with `batch: loop`; forbidden, they are errors.
BACKPLANE_API bool allow_batch_loop(bool allowed) noexcept;

// For the laws that compare two ways to one result. Each returns the old setting and holds for the process.
BACKPLANE_API bool force_decompositions(bool forced) noexcept;  // ops that have a decomposition use no kernel
BACKPLANE_API bool use_native_formulas(bool used) noexcept;     // generated code where there is some, or the evaluator

}  // namespace backplane
