// The fast path of the commonest calls: tensors of one synchronous device, of one dtype where they promote, that the
// best row takes as they are, and fresh results, or the given result of an elementwise op; or a view. It decides
// nothing on its own: it declines whenever the slow path (device_call.cpp) would do more than make the output and call
// that row, and the two give the same result.
//
// What does not depend on the call is in the op's plan. Here is what every call runs, inline in its edges
// (dispatch.cpp) and without a Call in memory; the rest is in fast_call.cpp and view_call.cpp.
#pragma once

#include "call/call_errors.hpp"
#include "call/dispatch.hpp"
#include "call/operands.hpp"
#include "memory/process/epoch.hpp"

namespace backplane::core {

// The output as a kernel wants to find it, or nothing where the operands would be cast first; a kernel's call with
// numbers in tensor positions; its failure.
bp_value make_output(const OpEntry& op, FastPath path, const bp_value* args, int32_t n_args, Device& device,
                     const TensorImpl& first);
bp_status run_with_numbers(const OpEntry& op, const FastRow& row, const bp_frame& frame, const bp_value* args,
                           int32_t n_args, bp_value* out);
// Tries an elementwise call into an output that the caller gave, which may be an operand.
bool call_fast_into(const OpEntry& op, const Plan& plan, const bp_value* args, const bp_value& out, uint64_t mask,
                    const Operands& operands);
[[noreturn]] void fail_fast_call(const OpEntry& op, const FastRow& row, Device& device, bp_status status,
                                 bp_value* out);
inline constexpr int32_t kMaxFastNumbers = 4;  // arguments of a call with numbers in tensor positions

inline bool must_decompose(const OpEntry& op) noexcept {
  return force_decomposition.load(std::memory_order_relaxed) && op.decompose;
}

// The row that takes all operands as they are, numbers included, or nullptr. Rows of withdrawn backends are gone, and a
// device that is lost, or that a fork left behind, has no plain dtypes: what check_usable asks else.
[[gnu::always_inline]] inline const FastRow* fast_row_for(const Plan& plan, int32_t n_args, const Operands& operands) {
  if (!operands.plain() || !operands.first || !operands.first->storage) return nullptr;
  const TensorImpl& first = *operands.first;
  if (first.backend >= plan.n_devices) [[unlikely]]
    return nullptr;
  const FastRow& row = plan.devices[first.backend].fast_row;
  const bp_dtype_mask plain = first.storage->device->plain_dtypes.load(std::memory_order_relaxed);
  if (!(row.dtypes & plain & BP_DTYPE_BIT(first.dtype))) [[unlikely]]
    return nullptr;
  if (!((row.granted_flags | operands.traits) & BP_TENSOR_CONTIGUOUS)) return nullptr;
  if (operands.numbers() &&
      (!row.immediates || n_args > kMaxFastNumbers || !(BP_DTYPE_BIT(first.dtype) & BP_MASK_FLOATING)))
    return nullptr;
  return &row;
}

// Into `out`, which is empty where the kernel makes its result.
[[gnu::always_inline]] inline bp_status try_fast_row(const OpEntry& op, const FastRow& row, const bp_value* args,
                                                     int32_t n_args, bp_value* out, uint64_t mask,
                                                     const Operands& operands) {
  bp_frame frame = row.frame;
  frame.ordinal = operands.first->ordinal;
  frame.keys = mask;
  frame.compute = operands.first->dtype;
  const bp_status status =
      operands.numbers() ? run_with_numbers(op, row, frame, args, n_args, out) : row.fn(&frame, args, n_args, out, 1);
  if (status != BP_OK) [[unlikely]]
    return status;
  out->flags = 0;
  counters.kernels.store(counters.kernels.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return BP_OK;
}

// Owns what `out` holds, if it fails.
[[gnu::always_inline]] inline void run_fast_row(const OpEntry& op, const FastRow& row, const bp_value* args,
                                                int32_t n_args, bp_value* out, uint64_t mask,
                                                const Operands& operands) {
  if (const bp_status status = try_fast_row(op, row, args, n_args, out, mask, operands)) [[unlikely]]
    fail_fast_call(op, row, *operands.first->storage->device, status, out);
}

// The try, for calls that no key intercepts, of an op with the fast path kPath. Under a CallGuard of the caller.
template <FastPath kPath>
[[gnu::always_inline]] inline bool call_fast(const OpEntry& op, const Plan& plan, const bp_value* args, bp_value* out,
                                             uint64_t mask, Operands operands) {
  if (out->flags != 0 || must_decompose(op)) return false;
  const FastRow* row = fast_row_for(plan, op.n_args, operands);
  if (!row) return false;
  if (kPath != FastPath::kFromKernel) {
    *out = make_output(op, kPath, args, op.n_args, *operands.first->storage->device, *operands.first);
    if (kPath == FastPath::kInferred && out->tag == BP_TAG_ABSENT) [[unlikely]]
      return false;
  }
  run_fast_row(op, *row, args, op.n_args, out, mask, operands);
  return true;
}

// fast_call.cpp.
template <>
bool call_fast<FastPath::kSeveral>(const OpEntry& op, const Plan& plan, const bp_value* args, bp_value* outs,
                                   uint64_t mask, Operands operands);

// view_call.cpp, where its edges are made.
template <>
bool call_fast<FastPath::kView>(const OpEntry& op, const Plan& plan, const bp_value* args, bp_value* out, uint64_t mask,
                                Operands operands);

// The keys among `keys` that intercept.
[[gnu::always_inline]] inline uint64_t intercepting(const Plan& plan, uint64_t keys, uint64_t mask) {
  return keys & mask & ~thread_state.excluded_keys & plan.answers;
}

// A call without a key, or with one whose slot has a fast path of its own. Of as many arguments and results as the op
// has. False: the slow path's.
template <FastPath kPath>
[[gnu::always_inline]] inline bool dispatch_fast(const OpEntry& op, const bp_value* args, bp_value* outs,
                                                 uint64_t mask) {
  const Operands operands = read_operands<kPath>(op, args);
  const Plan& plan = op.plan();
  uint64_t keys = operands.keys | thread_state.included_keys;
  if (keys) {
    if (keys & kViewKey) [[unlikely]] {
      keys = keys_of_views(args, op.n_args) | thread_state.included_keys;
      if (keys & kViewKey) return false;
    }
    keys = intercepting(plan, keys, mask);
  }
  if (!keys) [[likely]] {
    if (kPath == FastPath::kLikeOperands && outs->flags != 0) [[unlikely]]
      return call_fast_into(op, plan, args, *outs, mask, {operands.first, operands.keys, operands.traits});
    return call_fast<kPath>(op, plan, args, outs, mask, operands);
  }
  const KeySlot& slot = plan.slot_of(keys);
  // Of a copy: `operands` itself, handed on by address, would not stay in registers.
  return !(keys & (keys - 1)) && slot.fast &&
         slot.fast({op, args, op.n_args, outs, op.n_results, mask}, {operands.first, operands.keys, operands.traits});
}

// The two edges. Apart from the slow path, and one of each for each kind of op, so
// that all that a call needs stays in registers.
template <FastPath kPath>
bp_status call_packed_fast(const OpEntry& op, const bp_value* args, bp_value* outs, uint64_t after) noexcept {
  CallGuard guard(after);
  try {
    if (!dispatch_fast<kPath>(op, args, outs, ~uint64_t{0})) [[unlikely]]
      call_slow(op, args, outs);
    return BP_OK;
  } catch (...) {
    return fail_call(guard, &op, args, op.n_args);
  }
}

template <FastPath kPath>
bool attempt_fast(const OpEntry& op, const bp_value* args, bp_value* outs, uint64_t mask) {
  if (kPath != FastPath::kLikeOperands && outs->flags != 0) return false;  // before the operands are read for nothing
  return dispatch_fast<kPath>(op, args, outs, mask);
}

template <FastPath kPath>
void register_edges() {
  handlers.edges[static_cast<size_t>(kPath)] = {attempt_fast<kPath>, call_packed_fast<kPath>};
}

}  // namespace backplane::core
