// A call that nothing intercepts any more: infer, choose a row, prepare, run. See device_call.hpp.
#include "call/device_call.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "backplane/device.hpp"
#include "call/call_errors.hpp"
#include "call/formulas/decomposition.hpp"
#include "call/formulas/fused_decomposition.hpp"
#include "call/formulas/role_calls.hpp"
#include "call/host_fallback.hpp"
#include "call/kernel_form.hpp"
#include "call/operand_checks.hpp"
#include "call/own_results.hpp"
#include "call/result_shapes.hpp"
#include "call/row.hpp"
#include "call/scratch.hpp"
#include "memory/allocate.hpp"
#include "memory/devices/capture.hpp"
#include "memory/devices/device.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/plugin_finder.hpp"
#include "memory/tensors/expand.hpp"
#include "memory/tensors/loop.hpp"
#include "memory/tensors/overlap.hpp"
#include "memory/tensors/realign.hpp"
#include "record/dtype_rules.hpp"
#include "record/host_table.hpp"
#include "record/number_range.hpp"
#include "record/owned_value.hpp"
#include "record/resolved_args.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {
namespace {

// Everything that one kernel call needs, on the stack.
struct Prepared {
  bp_value args[kMaxArgs];
  bp_value outs[kMaxResults];
  double complex_storage[4][2];
  int n_complex = 0;
  std::vector<std::vector<bp_tensor*>> lists;
  ResolvedLists resolved;
  Temporaries temporaries;
  struct CopyBack {
    TensorImpl* from;
    TensorImpl* to;
    bool realigned;  // `from` is `to`, moved to where the kernel can write it
  };
  CopyBack copy_back[kMaxResults];
  int n_copy_back = 0;
};

void prepare_arguments(const Call& call, const KernelRow& row, Device& device, bp_dtype compute, ResultShapes& shapes,
                       Prepared& p) {
  const OpRecord& record = *call.op.record;
  const bool expands = expands_operands(call.op.flags, row.def.flags);
  const auto in_shape = [&](TensorImpl* t) {
    const ShapeResult& full = shapes.of(0);
    const bool fits = t->dl.ndim == full.ndim && std::equal(full.sizes, full.sizes + full.ndim, t->dl.shape);
    return fits ? t : p.temporaries.keep(expanded(record, *t, full));
  };
  for (int32_t i = 0; i < call.n_args; ++i) {
    const bp_value& v = call.args[i];
    bp_value& to = p.args[i];
    to = v;
    const bool promotes = i < 64 && (record.def.promote >> i & 1);
    const bool in_compute = promotes && !(row.def.flags & BP_KERNEL_CASTS);
    if (v.tag == BP_TAG_TENSOR) {
      TensorImpl* t = expands ? in_shape(impl(v.u.t)) : impl(v.u.t);
      to.u.t = prepare_tensor(t, row, device, in_compute, compute, p.temporaries);
    } else if (v.tag == BP_TAG_TENSOR_LIST) {
      auto& list = p.lists.emplace_back(v.u.tensors, v.u.tensors + v.count);
      for (bp_tensor*& t : list)
        if (t) t = prepare_tensor(impl(t), row, device, in_compute, compute, p.temporaries);
      to.u.tensors = list.data();
    } else if (record.args[static_cast<size_t>(i)].type == BP_TYPE_TENSOR && v.tag != BP_TAG_ABSENT) {
      BP_CHECK(p.n_complex < 4, TYPE, record.name, ": found more than 4 numbers in tensor positions");
      // Where it does not promote, as a mask or an index, it keeps its own kind.
      const bp_dtype kind = promotes ? compute : number_dtype(v.tag);
      if (kind != BP_DTYPE_NONE) check_number(kind, v, record, i);
      to = prepare_number(v, row, device, kind, p.complex_storage[p.n_complex++], p.temporaries);
      if (expands && to.tag == BP_TAG_TENSOR)
        to.u.t = prepare_tensor(in_shape(impl(to.u.t)), row, device, false, compute, p.temporaries);
    } else if (record.args[static_cast<size_t>(i)].type == BP_TYPE_SCALAR && v.tag != BP_TAG_ABSENT) {
      to = prepare_scalar(record, i, v, promotes ? compute : bp_dtype{BP_DTYPE_NONE});
    }
  }
  if (!row.resolves) return;
  shapes.check();
  resolve_args(record, p.args, p.resolved);
}

// May `target` be written without spoiling an argument? In place, the others are copied first: they
// may be far smaller than it.
bool may_write(const TensorImpl& target, const Call& call, const KernelRow& row, Prepared& p) {
  const bool in_place = row.def.flags & BP_KERNEL_INPLACE, apart = row.def.flags & BP_KERNEL_SEPARATE_BLOCKS;
  const auto spoils = [&](const TensorImpl& x) {
    if (!apart || x.storage != target.storage) return clashes(target, x, in_place);
    return !in_place || !same_layout(target, x);
  };
  const bool over_first = in_place && call.n_args > 0 && p.args[0].tag == BP_TAG_TENSOR && p.args[0].u.t == &target;
  bool free = true;
  for (int32_t i = 0; i < call.n_args; ++i) {
    bool clear = true;
    each_tensor(p.args + i, 1, [&](TensorImpl* x) { clear = clear && !spoils(*x); });
    if (clear) continue;
    if (over_first && p.args[i].tag == BP_TAG_TENSOR)
      p.args[i].u.t = p.temporaries.keep(roles::copy(impl(p.args[i].u.t), 0));
    else
      free = false;
  }
  return free;
}

void prepare_outputs(const Call& call, const KernelRow& row, Device& device, bp_dtype compute, ResultShapes& shapes,
                     Prepared& p) {
  const OpRecord& record = *call.op.record;
  for (int32_t i = 0; i < call.n_outs; ++i) {
    bp_value& slot = p.outs[i];
    slot = call.outs[i];
    if (row.def.flags & BP_KERNEL_OWN_RESULTS) {
      if (slot.flags & BP_VALUE_GIVEN) slot = bp_value{};
      continue;
    }
    bool dynamic = record.shape_words[static_cast<size_t>(i)] == nullptr && (call.op.flags & BP_OP_DYNAMIC);
    if (dynamic && !(slot.flags & BP_VALUE_GIVEN)) continue;
    BP_CHECK(!dynamic, NOT_IMPLEMENTED, record.name, ": the shape of result ", i,
             " depends on values, so it cannot be written into a given output");
    const ShapeResult& shape = shapes.of(i);
    bp_dtype dtype = result_dtype(record, call.args, call.n_args, i, compute);
    if (slot.flags & BP_VALUE_NOT_WANTED) {  // kernels write all their results
      slot = tensor_value(p.temporaries.keep(new_tensor(device, dtype, shape.ndim, shape.sizes)));
      slot.flags = BP_VALUE_GIVEN;
      continue;
    }
    if (!(slot.flags & BP_VALUE_GIVEN)) {
      slot = tensor_value(new_tensor(device, dtype, shape.ndim, shape.sizes));
      slot.flags = BP_VALUE_GIVEN;
      continue;
    }
    TensorImpl* target = impl(slot.u.t);
    check_given(call.op, *target, shape, dtype, device);
    bool direct = target->dtype == dtype && fits_layout(*target, row);
    if (direct && !is_aligned(*target, alignment_of(row, device))) {
      TensorImpl* moved = p.temporaries.keep(realigned(*target, device, alignment_of(row, device)));
      slot.u.t = moved;
      p.copy_back[p.n_copy_back++] = {moved, target, true};
      continue;
    }
    if (direct && row.def.flags & BP_KERNEL_SEPARATE_BLOCKS)
      each_tensor(p.outs, i, [&](TensorImpl* other) { direct = direct && other->storage != target->storage; });
    if (direct) direct = may_write(*target, call, row, p);
    if (!direct) {
      TensorImpl* temporary = p.temporaries.keep(new_tensor(device, dtype, shape.ndim, shape.sizes));
      slot.u.t = temporary;
      p.copy_back[p.n_copy_back++] = {temporary, target, false};
    }
  }
}

[[noreturn, gnu::cold]] void throw_not_capturable(const OpEntry& op, const Device& device) {
  detail::fail(BP_ERROR_NOT_IMPLEMENTED, op.record->name, ": its kernel on device ", name_of(device),
               " cannot be captured: its row has no BP_KERNEL_CAPTURABLE. Fix: call it before the capture or after it");
}

void run_row(const Call& call, const KernelRow& row, Device& device, bp_dtype compute, Prepared& p) {
  bp_frame frame;
  frame.header = BP_HEADER(bp_frame);
  frame.host = &host_table;
  frame.op = &call.op.record->info;
  frame.context = row.def.context;
  frame.stream = nullptr;
  frame.backend = device.backend->index;
  frame.ordinal = device.ordinal;
  frame.ticket = 0;
  frame.keys = call.mask & ~kCreationKey;  // what a kernel makes belongs to no level
  frame.level = 0;
  frame.compute = compute;
  frame.reserved = 0;
  frame.loop = nullptr;
  LoopStorage loop;
  if (needs_loop(call, row, p.args, p.outs)) {
    build_loop(call, p.args, p.outs, loop);
    frame.loop = &loop.loop;
  }
  bp_status status;
  if (device.synchronous() || (row.def.flags & BP_KERNEL_CALLS_OPS)) {
    CallGuard guard;
    ScratchScope scratch;
    status = row.def.fn(&frame, p.args, row.n_args, p.outs, call.n_outs);
  } else {
    std::vector<bp_storage*> reads, writes;
    each_tensor(p.args, call.n_args, [&](TensorImpl* t) { reads.push_back(t->storage); });
    each_tensor(p.outs, call.n_outs, [&](TensorImpl* t) {
      writes.push_back(t->storage);
      if (!covers_storage(*t)) reads.push_back(t->storage);
    });
    Stream& stream = current_stream(device);
    if (stream.capture && !(row.def.flags & BP_KERNEL_CAPTURABLE)) throw_not_capturable(call.op, device);
    std::lock_guard lock(device.lock);
    if (stream.capture) stream.capture->keep_plugin(row.owner);
    frame.stream = stream.handle;
    ScratchScope scratch;  // ends when the ticket is closed
    const OpenTicket ticket(stream, call.op.record->def.name, reads.data(), static_cast<int>(reads.size()),
                            writes.data(), static_cast<int>(writes.size()));
    frame.ticket = ticket;
    CallGuard guard;
    status = row.def.fn(&frame, p.args, row.n_args, p.outs, call.n_outs);
  }
  if (status != BP_OK) {
    status = status_of_kernel(device, row.owner, status);
    throw_status(status, call.op, row.owner->name.c_str());
  }
  count_kernel(call.op, device, row.owner);
}

// Takes the outputs back into the caller's slots.
void deliver(const Call& call, Prepared& p) {
  for (int i = 0; i < p.n_copy_back; ++i) {
    if (p.copy_back[i].realigned) {
      restore_span(*p.copy_back[i].from, *p.copy_back[i].to, device_of(*p.copy_back[i].to));
      continue;
    }
    roles::cast_into(p.copy_back[i].from, p.copy_back[i].to, 0);
  }
  for (int32_t i = 0; i < call.n_outs; ++i) {
    if (call.outs[i].flags & BP_VALUE_GIVEN) {
      impl(call.outs[i].u.t)->storage->version.fetch_add(1, std::memory_order_relaxed);
    } else if (!(call.outs[i].flags & BP_VALUE_NOT_WANTED)) {
      call.outs[i] = p.outs[i];
      call.outs[i].flags = 0;
    }
  }
}

// Of any row but those, whose results are looked at already.
void check_stored(const Call& call, const KernelRow& row, const bp_value* outs) {
  for (int32_t i = 0; i < call.n_outs; ++i) {
    const bool list = (call.op.record->results[static_cast<size_t>(i)].flags & BP_ARG_LIST) != 0;
    const uint16_t tag = list ? BP_TAG_TENSOR_LIST : BP_TAG_TENSOR;
    if (call.outs[i].flags & BP_VALUE_NOT_WANTED || (outs[i].tag == tag && (outs[i].u.p || list))) continue;
    throw_status(fail_stored(outs[i], i), call.op, row.owner->name.c_str());
  }
}

// Of a row with BP_KERNEL_OWN_RESULTS: where the caller gave an output, the kernel's tensor is copied to it.
void hand_over(const Call& call, Prepared& p) {
  for (int32_t i = 0; i < call.n_outs; ++i) {
    if (!(call.outs[i].flags & BP_VALUE_GIVEN)) continue;
    TensorImpl* made = p.temporaries.keep(impl(p.outs[i].u.t));
    p.outs[i] = call.outs[i];
    p.copy_back[p.n_copy_back++] = {made, impl(call.outs[i].u.t), false};
  }
}

void run_kernel(const Call& call, const KernelRow& row, Device& device, bp_dtype compute, ResultShapes& shapes) {
  const bool own_results = (row.def.flags & BP_KERNEL_OWN_RESULTS) != 0;
  Prepared p;
  for (int32_t i = 0; i < call.n_outs; ++i) p.outs[i] = bp_value{};
  try {
    std::optional<OwnResults> expected;
    if (own_results) expected.emplace(call, device, compute, shapes);
    prepare_arguments(call, row, device, compute, shapes, p);
    prepare_outputs(call, row, device, compute, shapes, p);
    run_row(call, row, device, compute, p);
    own_results ? expected->check(p.outs) : check_stored(call, row, p.outs);
  } catch (...) {
    for (int32_t i = 0; i < call.n_outs; ++i)
      if (own_results || !(call.outs[i].flags & (BP_VALUE_GIVEN | BP_VALUE_NOT_WANTED)))
        release_owned(p.outs[i], [](bp_tensor* t) { release(impl(t)); });
    throw;
  }
  if (own_results) hand_over(call, p);
  deliver(call, p);
}

}  // namespace

// On a device that was reset, whose memory of before is lost.
[[gnu::noinline]] static void check_operands(const Call& call) {
  const auto check = [](TensorImpl* t) {
    if (t->storage) check_current(*t->storage);
  };
  each_tensor(call.args, call.n_args, check);
  each_tensor(call.outs, call.n_outs, check);
}

// A comparison again, with infinities; apart, so that other calls have no room for its arguments on their stack.
[[gnu::noinline]] static bool compare_beyond(const Call& call, bp_dtype compute) {
  bp_value replaced[kMaxArgs];
  if (!with_infinities(*call.op.record, call.args, call.n_args, compute, replaced)) return false;
  call_on_device({call.op, replaced, call.n_args, call.outs, call.n_outs, call.mask});
  return true;
}

void call_on_device(const Call& call) {
  Device& device = device_of_call(call);
  check_usable(device);
  if (device.generation) check_operands(call);
  const OpRecord& record = *call.op.record;
  bp_dtype compute = compute_dtype(record, call.args, call.n_args);
  if ((record.def.dtype_flags & BP_DTYPE_COMPARES) && compare_beyond(call, compute)) return;
  bool decompose = call.op.decompose && force_decomposition.load(std::memory_order_relaxed);
  const bool lacking = lacked_dtype(call, device, compute) != BP_DTYPE_NONE;
  const Plan& plan = call.op.plan();
  ResultShapes shapes(call);
  if (!decompose && !lacking)
    if (const KernelRow* row = pick_row(call, device, compute, shapes, nullptr)) {
      if (device_observer) [[unlikely]]
        device_observer(call, device, compute, row, DeviceRule::kMissing);
      return run_kernel(call, *row, device, compute, shapes);
    }
  const uint32_t backend = device.backend->index;
  const DeviceRule otherwise =
      lacking || backend >= plan.n_devices ? DeviceRule::kMissing : plan.devices[backend].otherwise;
  if (device_observer) [[unlikely]]
    device_observer(call, device, compute, nullptr, otherwise);
  if (otherwise == DeviceRule::kDecomposition) {
    shapes.check();  // the same shape errors on every backend, whoever computes
    count_decomposition(call.op, device);
    if (!decompose && (call.op.flags & BP_OP_ELEMENTWISE) && fused_decomposition(call, shapes.of(0), device, compute))
      return;
    return decompose_checked({call.op, call.args, call.n_args, call.outs, call.n_outs, call.mask & ~kCreationKey});
  }
  if (otherwise == DeviceRule::kHostFallback && host_fallback() != HostFallback::kForbid)
    return call_host_fallback(call, device);
  // A plugin that registers on another thread counts as a whole: its kernels may come after its ops.
  plugin_finder.settle();
  if (&call.op.plan() != &plan) return call_on_device(call);
  Refusals why;
  pick_row(call, device, compute, shapes, &why);
  throw_missing_kernel(call, device, compute, why);
}

}  // namespace backplane::core
