#include "call/dispatch.hpp"

#include <cstring>
#include <utility>

#include "backplane/op.hpp"
#include "call/device_call.hpp"
#include "call/fast_call.hpp"
#include "memory/epoch.hpp"
#include "record/evaluator.hpp"
#include "record/owned_value.hpp"

namespace backplane::core {

constinit std::atomic<bool> force_decomposition{false};
constinit std::atomic<bool> native_formulas{true};
constinit Counters counters;
constinit CallHandlers call_handlers{};

namespace {

[[gnu::noinline]] void call_with_defaults(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* outs,
                                          int32_t n_outs, uint64_t mask) {
  bp_value full[kMaxArgs];
  const int32_t n = fill_defaults(*op.record, args, n_args, full);
  dispatch({op, full, n, outs, n_outs, mask});
}

Call without_creation(const Call& call) {
  return {call.op, call.args, call.n_args, call.outs, call.n_outs, call.mask & ~kCreationKey};
}

[[gnu::noinline]] void intercept(const Call& call, uint64_t keys) {
  // Without a tensor of a level or a new one, nothing of this call is a level's, whatever it makes on its way.
  if (!(keys & (kLevelKey | kCreationKey)) && (call.mask & kCreationKey))
    return intercept(without_creation(call), keys);
  if ((call.op.flags & BP_OP_COMPOSITE) && !((call.op.flags & kBatchedWhole) && (keys & kLevelKey)))
    return call_decomposition(call);
  uint64_t key = highest_key(keys);
  if ((call.op.flags & BP_OP_HIGHER_ORDER) && (key & (kLevelKey | kCreationKey | kTapeKey)))
    return call_handlers.graph(call);
  if (key & (kLevelKey | kCreationKey)) return call_handlers.level(call);
  if (key == kTapeKey) return call_handlers.tape(call);
  call_key(call, key);
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_result_count(const OpEntry& op, int32_t found) {
  detail::fail(BP_ERROR_TYPE, op.record->name, ": has ", op.n_results, " results, found ", found, " out slots");
}

bool leaves_out(const Call& call) {
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (call.outs[i].flags & BP_VALUE_NOT_WANTED) return true;
  return false;
}

// Whoever intercepts a call may read a result that its caller does not want: a derivative's formula does.
[[gnu::noinline]] void call_for_all_results(const Call& call) {
  bp_value outs[kMaxResults];
  for (int32_t i = 0; i < call.n_outs; ++i)
    outs[i] = call.outs[i].flags & BP_VALUE_NOT_WANTED ? bp_value{} : call.outs[i];
  dispatch({call.op, call.args, call.n_args, outs, call.n_outs, call.mask});
  for (int32_t i = 0; i < call.n_outs; ++i) {
    if (call.outs[i].flags & BP_VALUE_NOT_WANTED)
      release_owned(outs[i], [](bp_tensor* t) { release(impl(t)); });
    else
      call.outs[i] = outs[i];
  }
}

inline uint64_t keys_of(const bp_value* values, int32_t n) {
  uint64_t keys = 0;
  each_tensor(values, n, [&](TensorImpl* t) { keys |= t->keys; });
  return keys;
}

}  // namespace

int32_t fill_defaults(const OpRecord& record, const bp_value* args, int32_t n_args, bp_value* full) {
  auto n = static_cast<int32_t>(record.args.size());
  BP_CHECK(n_args <= n, TYPE, record.name, ": takes at most ", n, " arguments, found ", n_args);
  if (n_args > 0) std::memcpy(full, args, sizeof(bp_value) * static_cast<size_t>(n_args));
  for (int32_t i = n_args; i < n; ++i) {
    const bp_arg_def& arg = record.args[static_cast<size_t>(i)];
    BP_CHECK(arg.flags & (BP_ARG_HAS_DEFAULT | BP_ARG_OPTIONAL), TYPE, record.name, ": missing argument ", i + 1, " \"",
             arg.name, "\"");
    full[i] = arg.flags & BP_ARG_HAS_DEFAULT ? arg.default_value : bp_value{};
  }
  return n;
}

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void fail_missing_tensor(const Call& call, int32_t i) {
  const bp_arg_def& arg = call.op.record->args[static_cast<size_t>(i)];
  detail::fail(BP_ERROR_TYPE, call.op.record->name, ": argument ", i + 1, " \"", arg.name, "\": found ",
               call.args[i].tag == BP_TAG_TENSOR_LIST ? "a list with an empty tensor" : "an empty tensor",
               ", which a default-made Tensor is; expected one that was made by an op",
               arg.flags & BP_ARG_LIST ? "" : ", or a number");
}

// An absent tensor only where the signature says that it may be. The short way declines such calls.
inline void check_tensors_are_there(const Call& call) {
  for (int32_t i = 0; i < call.n_args; ++i) {
    const bp_value& v = call.args[i];
    if (v.tag == BP_TAG_ABSENT && (call.op.record->needed_tensors >> i & 1)) [[unlikely]]
      fail_missing_tensor(call, i);
    if (v.tag != BP_TAG_TENSOR_LIST || (call.op.record->args[static_cast<size_t>(i)].flags & BP_ARG_OPTIONAL_ELEMENTS))
      continue;
    for (uint32_t k = 0; k < v.count; ++k)
      if (!v.u.tensors[k]) fail_missing_tensor(call, i);
  }
  for (int32_t i = 0; i < call.n_outs; ++i)
    BP_CHECK(!(call.outs[i].flags & BP_VALUE_GIVEN) || call.outs[i].tag == BP_TAG_TENSOR, TYPE, call.op.record->name,
             ": the output to write into is an empty tensor; leave it out, or make one with empty()");
}

// `keys`: those that intercept, of the thread and the arguments. `operands`: of ops with a short way.
[[gnu::noinline]] void call_the_long_way(const Call& call, uint64_t keys, uint64_t considered,
                                         const Operands* operands) {
  check_stack(call.op.record->def.name);
  if (operands && keys == kTapeKey && !thread_state.level && call_handlers.tape_fast(call, *operands)) return;
  check_tensors_are_there(call);
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (call.outs[i].flags & BP_VALUE_GIVEN) keys |= impl(call.outs[i].u.t)->keys & considered;
  if (keys) {
    if (call.n_outs > 1 && leaves_out(call)) [[unlikely]]
      return call_for_all_results(call);
    if (keys == kTapeKey && !thread_state.level && !(call.op.flags & (BP_OP_COMPOSITE | BP_OP_HIGHER_ORDER)))
      return call_handlers.tape(call);
    return intercept(call, keys);
  }
  if (call.op.flags & BP_OP_COMPOSITE) return call_decomposition(without_creation(call));
  call.op.flags& BP_OP_HIGHER_ORDER ? call_handlers.graph(call) : call_on_device(call);
}

// The bodies of the functions below; a call pays for none of their edges, and no Call until it needs one.
[[gnu::always_inline]] inline void dispatch_here(const OpEntry& op, const bp_value* args, int32_t n_args,
                                                 bp_value* outs, int32_t n_outs, uint64_t mask) {
  const ThreadState& state = thread_state;
  uint64_t keys = state.included_keys;
  const uint64_t considered = mask & ~(state.excluded_keys | op.fall_through);
  if (op.short_way > ShortWay::kView) [[likely]] {
    const Operands operands = read_operands(op, args, n_args);
    keys |= operands.keys;
    if (!(keys & considered) && call_fast(op, args, n_args, outs, mask, operands)) [[likely]]
      return;
    // What is given away by address, member by member: the others stay in registers.
    const Operands kept{operands.first, operands.keys, operands.flags, operands.plain, operands.numbers};
    return call_the_long_way({op, args, n_args, outs, n_outs, mask}, keys & considered, considered, &kept);
  }
  if (op.short_way == ShortWay::kView && args[0].tag == BP_TAG_TENSOR) {
    keys |= impl(args[0].u.t)->keys;
    if (!(keys & considered) && call_view_fast(op, args, n_args, outs)) return;
  }
  keys |= keys_of(args, n_args);
  call_the_long_way({op, args, n_args, outs, n_outs, mask}, keys & considered, considered, nullptr);
}

[[gnu::always_inline]] inline void call_here(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* outs,
                                             int32_t n_outs, uint64_t mask) {
  if (n_outs != op.n_results) [[unlikely]]
    fail_result_count(op, n_outs);
  if (n_args == op.n_args) [[likely]]
    return dispatch_here(op, args, n_args, outs, n_outs, mask);
  call_with_defaults(op, args, n_args, outs, n_outs, mask);
}

}  // namespace

void dispatch(const Call& call) { dispatch_here(call.op, call.args, call.n_args, call.outs, call.n_outs, call.mask); }

void call(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs, uint64_t mask) {
  call_here(op, args, n_args, outs, n_outs, mask);
}

TensorImpl* call_one(const OpEntry& op, const bp_value* args, int32_t n_args, uint64_t mask) {
  bp_value out{};
  call(op, args, n_args, &out, 1, mask);
  return impl(out.u.t);
}

void release_outputs(bp_value* outs, int32_t n_outs, const bp_value* before) {
  for (int32_t i = 0; i < n_outs; ++i) {
    if (before[i].flags & (BP_VALUE_GIVEN | BP_VALUE_NOT_WANTED)) continue;
    release_owned(outs[i], [](bp_tensor* t) { release(impl(t)); });
    outs[i] = before[i];
  }
}

void call_key(const Call& call, uint64_t key) {
  auto bit = static_cast<uint32_t>(__builtin_ctzll(key));
  uint64_t below = call.mask & ~key;
  CallGuard guard;
  const KeyRecord* record = key_at(bit);
  const KernelTable* table = call.op.table.load(std::memory_order_acquire);
  const KernelRow* row = bit < table->by_key.size() ? table->by_key[bit] : nullptr;
  bp_kernel_fn fn = row ? row->def.fn : record && !record->withdrawn ? record->fallback : nullptr;
  if (!fn) return dispatch({call.op, call.args, call.n_args, call.outs, call.n_outs, below});
  bp_frame frame{};
  frame.header = BP_HEADER(bp_frame);
  frame.host = &host_table;
  frame.op = &call.op.record->info;
  frame.context = row ? row->def.context : record->context;
  frame.keys = below;
  frame.compute = BP_DTYPE_NONE;
  frame.level = thread_state.depth;
  bp_value before[kMaxResults];
  std::memcpy(before, call.outs, sizeof(bp_value) * static_cast<size_t>(call.n_outs));
  cold().error.clear();
  bp_status status = fn(&frame, call.args, call.n_args, call.outs, call.n_outs);
  if (status != BP_OK) {
    release_outputs(call.outs, call.n_outs, before);
    throw_status(status, call.op, record->name.c_str());
  }
}

namespace {
// How the evaluator reaches the call path.
bp_status evaluator_call(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args, bp_value* outs,
                         int32_t n_outs) {
  try {
    call(checked_entry(op), args, n_args, outs, n_outs, frame ? frame->keys : ~uint64_t{0});
    return BP_OK;
  } catch (...) {
    return status_of_exception();
  }
}
bp_status evaluator_call_spending(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args,
                                  bp_value* out, uint64_t spent) {
  try {
    call_spending(checked_entry(op), args, n_args, out, frame ? frame->keys : ~uint64_t{0}, spent);
    return BP_OK;
  } catch (...) {
    return status_of_exception();
  }
}
const OpRecord* record_of(uint32_t op) { return op_entry(op)->record.get(); }
}  // namespace

constinit Caller caller{evaluator_call, record_of, [](bp_tensor* t) { retain(impl(t)); },
                        [](bp_tensor* t) { release(impl(t)); }, evaluator_call_spending};

}  // namespace backplane::core

namespace backplane {

using namespace core;

namespace core {

// Apart from the ways below, so that these keep all that they need in registers.
[[gnu::noinline]] bp_status call_packed_in_full(OpHandle op, const bp_value* args, int32_t n_args, bp_value* outs,
                                                int32_t n_outs) noexcept {
  try {
    CallGuard guard;
    call_here(checked_entry(op), args, n_args, outs, n_outs, ~uint64_t{0});
    return BP_OK;
  } catch (...) {
    return tell_caller(op, args, n_args);
  }
}

}  // namespace core

namespace {

// A call that the tape alone intercepts.
[[gnu::noinline]] bp_status call_packed_recorded(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* out,
                                                 const TensorImpl* first, uint32_t flags) noexcept {
  if (!thread_state.level) {
    try {
      CallGuard guard;
      if (call_handlers.tape_fast({op, args, n_args, out, 1, ~uint64_t{0}}, {first, kTapeKey, flags})) return BP_OK;
    } catch (...) {
      return tell_caller(op.handle, args, n_args);
    }
  }
  return call_packed_in_full(op.handle, args, n_args, out, 1);
}

// Of an op with a short way that makes no view.
[[gnu::noinline]] bp_status call_packed_short(const OpEntry& op, const bp_value* args, int32_t n_args,
                                              bp_value* out) noexcept {
  uint64_t keys = thread_state.included_keys;
  uint32_t flags;
  const TensorImpl* first = read_tensors(op, args, n_args, keys, flags);
  // Without a key, neither a mask nor an exclusion matters.
  if (first && !keys && out->flags == 0 && !must_decompose(op)) [[likely]] {
    try {
      OutermostCall guard;
      const ShortRow* row = guard.entered() ? short_row_for(op, *first, flags) : nullptr;
      if (row) [[likely]] {
        run_short_row(op, *row, args, n_args, out, ~uint64_t{0}, *first, false);
        return BP_OK;
      }
    } catch (...) {
      return tell_caller(op.handle, args, n_args);
    }
  }
  if (first && (keys & ~(thread_state.excluded_keys | op.fall_through)) == kTapeKey)
    return call_packed_recorded(op, args, n_args, out, first, flags);
  return call_packed_in_full(op.handle, args, n_args, out, 1);
}

}  // namespace

bp_status call_packed(OpHandle op, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) noexcept {
  const OpEntry* entry = op_entry(op);
  if (!entry || entry->short_way == ShortWay::kNone || n_args != entry->n_args || n_outs != 1) [[unlikely]]
    return call_packed_in_full(op, args, n_args, outs, n_outs);
  if (entry->short_way == ShortWay::kView) return call_packed_view(*entry, args, n_args, outs);
  return call_packed_short(*entry, args, n_args, outs);
}

bp_status call_inplace(OpHandle op, const bp_value* args, int32_t n_args) noexcept {
  try {
    CallGuard guard;
    OpEntry& entry = checked_entry(op);
    BP_CHECK(entry.flags & BP_OP_INPLACE, NOT_IMPLEMENTED, entry.record->name, ": has no in-place variant");
    BP_CHECK(n_args > 0 && args[0].tag == BP_TAG_TENSOR, TYPE, entry.record->name,
             ": the in-place variant writes to its first argument, which must be a tensor, neither empty nor a number");
    bp_value out = args[0];
    out.flags = BP_VALUE_GIVEN;
    core::call(entry, args, n_args, &out, 1);
    return BP_OK;
  } catch (...) {
    return tell_caller(op, args, n_args);
  }
}

std::vector<Tensor> take_list(bp_value& slot) {
  BP_CHECK(slot.tag == BP_TAG_TENSOR_LIST, TYPE, "take_list: the slot holds no list of tensors");
  std::vector<Tensor> tensors(slot.count);
  for (uint32_t i = 0; i < slot.count; ++i) tensors[i] = Tensor::adopt(std::exchange(owned_tensors(slot)[i], nullptr));
  release_owned(slot, [](bp_tensor*) {});
  return tensors;
}

const char* last_error() noexcept { return cold().error.c_str(); }

void throw_last_error(bp_status status) { throw Error(status, cold().error); }

CallCounts call_counts() noexcept {
  return {counters.kernels.load(std::memory_order_relaxed), counters.decompositions.load(std::memory_order_relaxed),
          counters.host_fallbacks.load(std::memory_order_relaxed),
          counters.batch_loops.load(std::memory_order_relaxed)};
}

void reset_call_counts() noexcept {
  counters.kernels = 0;
  counters.decompositions = 0;
  counters.host_fallbacks = 0;
  counters.batch_loops = 0;
}

bool force_decompositions(bool forced) noexcept { return core::force_decomposition.exchange(forced); }
bool use_native_formulas(bool used) noexcept { return core::native_formulas.exchange(used); }

bool allow_host_fallback(bool allowed) noexcept { return counters.host_fallback_allowed.exchange(allowed); }

}  // namespace backplane
