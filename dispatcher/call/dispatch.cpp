#include "call/dispatch.hpp"

#include <cstring>
#include <utility>

#include "backplane/op.hpp"
#include "call/call_errors.hpp"
#include "call/changed_arguments.hpp"
#include "call/device_call.hpp"
#include "call/fast_call.hpp"
#include "call/formulas/decomposition.hpp"
#include "call/view_call.hpp"
#include "memory/process/epoch.hpp"
#include "record/builtin_numbers.hpp"
#include "record/evaluator.hpp"
#include "record/number_range.hpp"
#include "record/owned_value.hpp"

namespace backplane::core {

constinit std::atomic<bool> force_decomposition{false};
constinit std::atomic<bool> native_formulas{true};
constinit Counters counters;
constinit DeviceCopyHook device_copy_hook = nullptr;

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void fail_result_count(const OpEntry& op, int32_t found) {
  detail::fail(BP_ERROR_TYPE, op.record->name, ": has ", op.n_results, " results, found ", found, " out slots");
}

void check_slots(const OpEntry& op, const bp_value* outs, int32_t n_outs) {
  BP_CHECK(outs || n_outs == 0, TYPE, op.record->name, ": the address of its out slots is null");
}

bool has_unwanted_result(const Call& call) {
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (call.outs[i].flags & BP_VALUE_NOT_WANTED) return true;
  return false;
}

// Interceptors may read every result (derivative formulas do), so compute all of them here.
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

}  // namespace

int32_t fill_defaults(const OpRecord& record, const bp_value* args, int32_t n_args, bp_value* full) {
  auto n = static_cast<int32_t>(record.args.size());
  BP_CHECK(n_args >= 0 && n_args <= n, TYPE, record.name, ": takes at most ", n, " arguments, found ", n_args);
  BP_CHECK(args || n_args == 0, TYPE, record.name, ": the address of its ", n_args, " arguments is null");
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

// A tensor position holds a tensor, a number, or a list of them. Values that were put together by hand
// may hold anything.
[[gnu::noinline]] void check_tensor_argument(const Call& call, int32_t i) {
  const bp_arg_def& arg = call.op.record->args[static_cast<size_t>(i)];
  const bp_value& v = call.args[i];
  const bool list = (arg.flags & BP_ARG_LIST) != 0;
  if (v.tag == BP_TAG_ABSENT) {
    if (call.op.record->needed_tensors >> i & 1) fail_missing_tensor(call, i);
    return;
  }
  const bool good = v.tag == BP_TAG_TENSOR        ? !list && v.u.t
                    : v.tag == BP_TAG_TENSOR_LIST ? list && (v.u.tensors || !v.count)
                                                  : !list && v.tag >= BP_TAG_BOOL && v.tag <= BP_TAG_COMPLEX;
  BP_CHECK(good, TYPE, call.op.record->name, ": argument ", i + 1, " \"", arg.name, "\": found ",
           v.u.p ? tag_name(v.tag) : "a null pointer", ", expected ",
           list ? "a list of tensors" : "a tensor or a number");
  if (!list || (arg.flags & BP_ARG_OPTIONAL_ELEMENTS)) return;
  for (uint32_t k = 0; k < v.count; ++k)
    if (!v.u.tensors[k]) fail_missing_tensor(call, i);
}

// An absent tensor only where the signature says that it may be, a complex number only where it counts. The fast path
// declines such calls.
inline void check_arguments(const Call& call) {
  for (int32_t i = 0; i < call.n_args; ++i) {
    const bp_value& v = call.args[i];
    if (v.tag == BP_TAG_COMPLEX) [[unlikely]]
      check_complex_scalar(*call.op.record, call.args, call.n_args, i);
    if ((v.tag != BP_TAG_TENSOR || !v.u.t) && (call.op.record->tensor_args >> (i & 63) & 1))
      check_tensor_argument(call, i);
  }
  for (int32_t i = 0; i < call.n_outs; ++i)
    BP_CHECK(!(call.outs[i].flags & BP_VALUE_GIVEN) || call.outs[i].tag == BP_TAG_TENSOR, TYPE, call.op.record->name,
             ": the output to write into is an empty tensor; leave it out, or make one with empty()");
}

uint64_t keys_of_target(TensorImpl* target, uint64_t mask) {
  if (is_unrecorded_view(*target) && (mask & kTapeKey) && !thread_state.grad_disabled) history_owner.join(target);
  return keys_now(target);
}

// Whatever the fast path does not serve.
[[gnu::noinline]] void dispatch_slow(Call call) {
  const OpEntry& op = call.op;
  check_stack(op.record->def.name);
  check_arguments(call);
  uint64_t keys = thread_state.included_keys;
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) { keys |= keys_now(t); });
  for (int32_t i = 0; i < call.n_outs; ++i)
    if (call.outs[i].flags & BP_VALUE_GIVEN) keys |= keys_of_target(impl(call.outs[i].u.t), call.mask);
  const Plan& plan = op.plan();
  keys = intercepting(plan, keys, call.mask);
  if (keys && call.n_outs > 1 && has_unwanted_result(call)) [[unlikely]]
    return call_for_all_results(call);
  // Without a tensor of a level or a new one, nothing of this call belongs to a level.
  if (!(keys & (kLevelKey | kCreationKey))) call.mask &= ~kCreationKey;
  if (!(keys & kAutocastKey)) call.mask &= kInnerKeys;  // an op that is not cast has no parts that are
  if (!keys) return plan.device(call, nullptr);
  const KeySlot& slot = plan.slot_of(highest_key(keys));
  slot.handle(call, &slot);
}

}  // namespace

void dispatch(const Call& call) {
  const FastEdges& edges = call.op.edges;
  if (edges.attempt && edges.attempt(call.op, call.args, call.outs, call.mask)) [[likely]]
    return;
  dispatch_slow(call);
}

void call_slow(const OpEntry& op, const bp_value* args, bp_value* outs) {
  if (op.withdrawn.load(std::memory_order_acquire)) [[unlikely]]
    fail_entry(op.handle);
  check_slots(op, outs, op.n_results);
  dispatch_slow({op, args, op.n_args, outs, op.n_results, ~uint64_t{0}});
}

void call(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs, uint64_t mask) {
  if (n_outs != op.n_results) [[unlikely]]
    fail_result_count(op, n_outs);
  if (n_args == op.n_args) [[likely]]
    return dispatch({op, args, n_args, outs, n_outs, mask});
  bp_value full[kMaxArgs];
  const int32_t n = fill_defaults(*op.record, args, n_args, full);
  dispatch({op, full, n, outs, n_outs, mask});
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

namespace {

// The key's function is a plugin's: it has stored what the signature says.
void check_stored(const Call& call, const char* key) {
  for (int32_t i = 0; i < call.n_outs; ++i) {
    const bp_value& out = call.outs[i];
    if (out.flags & (BP_VALUE_GIVEN | BP_VALUE_NOT_WANTED)) continue;
    const bool list = (call.op.record->results[static_cast<size_t>(i)].flags & BP_ARG_LIST) != 0;
    BP_CHECK(out.tag == (list ? BP_TAG_TENSOR_LIST : BP_TAG_TENSOR) && out.u.p, TYPE, call.op.record->name,
             ": the function of key ", key, " stored ", out.u.p ? tag_name(out.tag) : "nothing", " as result ", i,
             "; expected a ", list ? "list of tensors" : "tensor");
  }
}

// A plugin's key.
void call_key(const Call& call, const KeySlot* slot) {
  const KernelRow* row = slot->row;
  const KeyRecord& key = *slot->key;
  const uint64_t below = call.mask & ~(uint64_t{1} << key.bit);
  // A replaced op's plan may be older than the key's end.
  if (!row && key.withdrawn) return dispatch({call.op, call.args, call.n_args, call.outs, call.n_outs, below});
  bp_frame frame = frame_of(*call.op.record);
  frame.context = row ? row->def.context : key.context;
  frame.keys = below;
  frame.level = thread_state.depth;
  bp_value before[kMaxResults];
  std::memcpy(before, call.outs, sizeof(bp_value) * static_cast<size_t>(call.n_outs));
  cold().error.clear();
  bp_status status = (row ? row->def.fn : key.fallback)(&frame, call.args, call.n_args, call.outs, call.n_outs);
  if (status != BP_OK) {
    release_outputs(call.outs, call.n_outs, before);
    throw_status(status, call.op, key.name.c_str());
  }
  try {
    check_stored(call, key.name.c_str());
  } catch (...) {
    for (int32_t i = 0; i < call.n_outs; ++i)
      if (!call.outs[i].u.p) call.outs[i] = bp_value{};
    release_outputs(call.outs, call.n_outs, before);
    throw;
  }
}

// The edge of ops without a fast path.
bp_status call_packed_whole(const OpEntry& op, const bp_value* args, bp_value* outs, uint64_t after) noexcept {
  CallGuard guard(after);
  try {
    call_slow(op, args, outs);
    return BP_OK;
  } catch (...) {
    return fail_call(guard, &op, args, op.n_args);
  }
}

// Of any numbers of arguments and slots, and of any handle.
[[gnu::noinline]] bp_status call_packed_slow(uint32_t op, const bp_value* args, int32_t n_args, bp_value* outs,
                                             int32_t n_outs) noexcept {
  CallGuard guard;
  try {
    const OpEntry& entry = checked_entry(op);
    check_slots(entry, outs, n_outs);
    call(entry, args, n_args, outs, n_outs, ~uint64_t{0});
    return BP_OK;
  } catch (...) {
    return fail_call(guard, op_entry(op), args, n_args);
  }
}

[[gnu::constructor]] void register_handlers() {
  handlers.device = [](const Call& call, const KeySlot*) { call_on_device(call); };
  handlers.decomposition = [](const Call& call, const KeySlot*) { call_decomposition(call); };
  handlers.view = [](const Call& call, const KeySlot*) { call_view(call); };
  handlers.key = call_key;
  handlers.edges[static_cast<size_t>(FastPath::kNone)].packed = call_packed_whole;
  register_edges<FastPath::kLikeOperands>();
  register_edges<FastPath::kInferred>();
  register_edges<FastPath::kFromKernel>();
  register_edges<FastPath::kSeveral>();
}

}  // namespace
}  // namespace backplane::core

namespace backplane {

using namespace core;

bp_status call_packed(OpHandle op, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) noexcept {
  // It enters first: an entry that is replaced meanwhile is freed once no call can hold it.
  uint64_t after;
  if (op < kMaxOps && CallGuard::enter(after)) [[likely]] {
    const OpEntry* entry = op_slots[op].load(std::memory_order_acquire);
    if (entry && n_args == entry->n_args && n_outs == entry->n_results) [[likely]]
      return entry->edges.packed(*entry, args, outs, after);
    CallGuard leaves(after);
  }
  return call_packed_slow(op, args, n_args, outs, n_outs);
}

bp_status call_inplace(OpHandle op, const bp_value* args, int32_t n_args) noexcept {
  CallGuard guard;
  try {
    OpEntry& entry = checked_entry(op);
    BP_CHECK(entry.flags & BP_OP_INPLACE, NOT_IMPLEMENTED, entry.record->name, ": has no in-place variant");
    const bool may_decompose = entry.derivative == Derivative::kDecompose;
    if (entry.n_results != 1 || (may_decompose && changes_by_decomposition(entry, args, args ? n_args : 0))) {
      change_arguments(entry, args, args ? n_args : 0);
      return BP_OK;
    }
    BP_CHECK(n_args > 0 && args && args[0].tag == BP_TAG_TENSOR && args[0].u.t, TYPE, entry.record->name,
             ": the in-place variant writes to its first argument, which must be a tensor, neither empty nor a number");
    bp_value out = args[0];
    out.flags = BP_VALUE_GIVEN;
    core::call(entry, args, n_args, &out, 1);
    return BP_OK;
  } catch (...) {
    return fail_call(guard, op_entry(op), args, n_args);
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

}  // namespace backplane
