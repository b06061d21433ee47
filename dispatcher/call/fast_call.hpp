// The short way of the commonest calls: tensors of one synchronous device, of one dtype where they promote, that the
// best row takes as they are, and one result. It decides nothing on its own: it declines whenever device_call.cpp would
// do more than make the output and call that row, and the two give the same result.
//
// One walk over the arguments gives the call's keys and what the short way needs to know of its operands. What does not
// depend on the call is worked out at registration, in OpEntry::short_way and ShortRow. Here is what every call runs,
// inline in its edges (dispatch.cpp) and without a Call in memory; the rest is in fast_call.cpp.
#pragma once

#include "call/device_call.hpp"
#include "memory/epoch.hpp"

namespace backplane::core {

// What the operands of a call have in common.
struct Operands {
  const TensorImpl* first = nullptr;
  uint64_t keys = 0;
  uint32_t flags = ~0u;  // BP_TENSOR_* that all have
  bool plain = true;     // of one form, as far as the op wants that
  bool numbers = false;  // some stand in tensor positions
};

// An int that only uint64 holds, or no dtype: how it reaches a kernel is the general way's to say.
inline constexpr uint16_t kLargeInt = BP_VALUE_UINT64 | BP_VALUE_BEYOND;

// An argument that is no tensor. Numbers are taken where all operands have one form, and an absent tensor where the op
// does not compute with it.
[[gnu::always_inline]] inline void read_other(const OpEntry& op, const bp_value& v, int32_t i, Operands& sum) {
  if (v.flags & kLargeInt) sum.plain = false;
  if (v.tag == BP_TAG_TENSOR_LIST) {
    each_tensor(&v, 1, [&](TensorImpl* t) { sum.keys |= t->keys; });
    sum.plain = false;
  } else if (i < 64 && (op.record->tensor_args >> i & 1)) {
    sum.numbers = sum.numbers || v.tag != BP_TAG_ABSENT;
    const bool number = op.short_way == ShortWay::kLikeOperands && (v.tag == BP_TAG_FLOAT || v.tag == BP_TAG_INT);
    sum.plain =
        sum.plain &&
        (number || (v.tag == BP_TAG_ABSENT && !(op.record->needed_tensors >> i & 1) && i >= op.record->n_alike));
  }
}

[[gnu::always_inline]] inline Operands read_operands(const OpEntry& op, const bp_value* args, int32_t n_args) {
  Operands sum;
  int32_t i = 0;
  if (n_args > 0 && args[0].tag == BP_TAG_TENSOR) [[likely]] {
    sum.first = impl(args[0].u.t);
    sum.keys = sum.first->keys;
    sum.flags = sum.first->flags;
    i = 1;
  }
  for (; i < n_args; ++i) {
    if (args[i].tag != BP_TAG_TENSOR) {
      read_other(op, args[i], i, sum);
      continue;
    }
    const TensorImpl& t = *impl(args[i].u.t);
    sum.keys |= t.keys;
    sum.flags &= t.flags;
    if (!sum.first) {
      sum.first = &t;
      continue;
    }
    const TensorImpl& x = *sum.first;
    sum.plain = sum.plain && t.storage && same_device(t, x) && (t.dtype == x.dtype || i >= op.record->n_alike) &&
                (op.short_way != ShortWay::kLikeOperands || same_shape(t, x));
  }
  return sum;
}

// fast_call.cpp: the output as a kernel wants to find it; a kernel's call with numbers in tensor positions; its
// failure.
bp_value make_output(const OpEntry& op, const bp_value* args, int32_t n_args, Device& device, const TensorImpl& first);
bp_status run_with_numbers(const OpEntry& op, const ShortRow& row, const bp_frame& frame, const bp_value* args,
                           int32_t n_args, bp_value* out);
[[noreturn]] void fail_short_call(const OpEntry& op, const ShortRow& row, Device& device, bp_status status,
                                  bp_value* out);
// view_call.cpp: the same for views of a tensor, args[0]. False: it declines.
bool call_view_fast(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* out);
// call_packed's share in it, and the call_packed of every call that no short way serves; dispatch.cpp.
bp_status call_packed_view(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* out) noexcept;
bp_status call_packed_in_full(uint32_t op, const bp_value* args, int32_t n_args, bp_value* outs,
                              int32_t n_outs) noexcept;
// Of the exception in flight, at an edge.
[[gnu::cold]] bp_status tell_caller(uint32_t op, const bp_value* args, int32_t n_args) noexcept;
inline constexpr int32_t kMaxShortNumbers = 4;  // arguments of a call with numbers in tensor positions

// The row that takes operands of these common flags as they are, or nullptr. Rows of withdrawn backends are gone, and a
// device that is lost, or that a fork left behind, has no plain dtypes: what check_usable asks else.
[[gnu::always_inline]] inline const ShortRow* short_row_for(const OpEntry& op, const TensorImpl& first,
                                                            uint32_t flags) {
  const KernelTable* table = op.table.load(std::memory_order_acquire);
  if (first.backend >= table->n_short_rows) [[unlikely]]
    return nullptr;
  const ShortRow& row = table->short_rows[first.backend];
  if (!(row.dtypes & first.storage->device->plain_dtypes & BP_DTYPE_BIT(first.dtype))) [[unlikely]]
    return nullptr;
  if (!((row.granted_flags | flags) & BP_TENSOR_CONTIGUOUS)) return nullptr;
  return &row;
}

// Into `out`, which is empty where the kernel makes its result.
[[gnu::always_inline]] inline void run_short_row_into(const OpEntry& op, const ShortRow& row, const bp_value* args,
                                                      int32_t n_args, bp_value* out, uint64_t mask,
                                                      const TensorImpl& first, bool numbers) {
  bp_frame frame = row.frame;
  frame.ordinal = first.ordinal;
  frame.keys = mask;
  frame.compute = first.dtype;
  const bp_status status =
      numbers ? run_with_numbers(op, row, frame, args, n_args, out) : row.fn(&frame, args, n_args, out, 1);
  if (status != BP_OK) [[unlikely]]
    fail_short_call(op, row, *first.storage->device, status, out);
  out->flags = 0;
  counters.kernels.store(counters.kernels.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

[[gnu::always_inline]] inline void run_short_row(const OpEntry& op, const ShortRow& row, const bp_value* args,
                                                 int32_t n_args, bp_value* out, uint64_t mask, const TensorImpl& first,
                                                 bool numbers) {
  if (op.short_way != ShortWay::kFromKernel) *out = make_output(op, args, n_args, *first.storage->device, first);
  run_short_row_into(op, row, args, n_args, out, mask, first, numbers);
}

inline bool must_decompose(const OpEntry& op) noexcept {
  return force_decomposition.load(std::memory_order_relaxed) && op.decompose;
}

// The row that takes all operands as they are, numbers included; nullptr: none does, or they are not of one form.
[[gnu::always_inline]] inline const ShortRow* short_row_for_operands(const OpEntry& op, int32_t n_args,
                                                                     const Operands& operands) {
  if (!operands.plain || !operands.first || !operands.first->storage) return nullptr;
  const ShortRow* row = short_row_for(op, *operands.first, operands.flags);
  if (row && operands.numbers &&
      (!row->immediates || n_args > kMaxShortNumbers || !(BP_DTYPE_BIT(operands.first->dtype) & BP_MASK_FLOATING)))
    return nullptr;
  return row;
}

// The try, for calls that no key intercepts. Of ops that have a short way, under a CallGuard of the caller.
[[gnu::always_inline]] inline bool call_fast(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* out,
                                             uint64_t mask, const Operands& operands) {
  if (out->flags != 0 || must_decompose(op)) return false;
  const ShortRow* row = short_row_for_operands(op, n_args, operands);
  if (!row) return false;
  run_short_row(op, *row, args, n_args, out, mask, *operands.first, operands.numbers);
  return true;
}

// The commonest operands of all: tensors of one form, of which the first argument is one, and no numbers among them.
// nullptr for others. `keys` and `flags` as in Operands. Of ops that have a short way, and so a first argument.
[[gnu::always_inline]] inline const TensorImpl* read_tensors(const OpEntry& op, const bp_value* args, int32_t n_args,
                                                             uint64_t& keys, uint32_t& flags) {
  if (args[0].tag != BP_TAG_TENSOR) return nullptr;
  const TensorImpl& x = *impl(args[0].u.t);
  if (!x.storage) return nullptr;
  keys |= x.keys;
  flags = x.flags;
  for (int32_t i = 1; i < n_args; ++i) {
    if (args[i].tag != BP_TAG_TENSOR) {
      if ((args[i].flags & kLargeInt) || args[i].tag == BP_TAG_TENSOR_LIST || (op.record->tensor_args >> i & 1))
        return nullptr;
      continue;
    }
    const TensorImpl& t = *impl(args[i].u.t);
    keys |= t.keys;
    flags &= t.flags;
    if (!t.storage || !same_device(t, x) || (t.dtype != x.dtype && i < op.record->n_alike)) return nullptr;
    if (op.short_way == ShortWay::kLikeOperands && !same_shape(t, x)) return nullptr;
  }
  return &x;
}

}  // namespace backplane::core
