// The host table: what plugins call. Every function turns exceptions into a status at this edge.
#include "record/host_table.hpp"

#include <cstdio>
#include <cstring>

#include "backplane/log.hpp"
#include "backplane/op.hpp"
#include "call/dispatch.hpp"
#include "call/extensions.hpp"
#include "call/reuse.hpp"
#include "memory/allocate.hpp"
#include "memory/devices/device.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/parallel.hpp"
#include "record/dtype_rules.hpp"
#include "record/owned_value.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {
namespace {

template <class Body>
bp_status guarded(Body body) noexcept {
  try {
    body();
    return BP_OK;
  } catch (...) {
    return status_of_exception();
  }
}

void set_error(bp_status code, const char* message) {
  ThreadCold& block = cold();
  block.error = message ? message : "";
  block.error_code = code;
  block.error_is_new = true;
}

const char* get_error() { return cold().error.c_str(); }

constexpr const char* kSeverities[] = {"debug", "info", "warning", "error"};

void log(int32_t severity, const char* message) {
  if (severity < log_severity() || severity > BP_LOG_ERROR) return;
  std::fprintf(stderr, "backplane: %s: %s\n", kSeverities[severity], message);
}

Device& frame_device(const bp_frame* frame) { return device_at({frame->backend, frame->ordinal}); }

bp_status alloc_output(const bp_frame* frame, bp_value* slot, bp_dtype dtype, int32_t ndim, const int64_t* shape) {
  return guarded([&] {
    BP_CHECK(slot->tag == BP_TAG_ABSENT && !(slot->flags & (BP_VALUE_GIVEN | BP_VALUE_NOT_WANTED)), VALUE,
             "alloc_output: the slot is not empty");
    BP_CHECK(dtype < BP_DTYPE_COUNT, DTYPE, "alloc_output: found the unknown dtype ", dtype);
    BP_CHECK(ndim >= 0 && ndim <= kMaxRank, SHAPE, "alloc_output: rank ", ndim, " is not in 0..", kMaxRank);
    for (int32_t i = 0; i < ndim; ++i)
      BP_CHECK(shape[i] >= 0, SHAPE, "alloc_output: size ", shape[i], " of axis ", i, " is negative");
    checked_count(shape, ndim);
    *slot = tensor_value(new_tensor(frame_device(frame), dtype, ndim, shape));
  });
}

bp_status scratch(const bp_frame* frame, uint64_t size, void** data) {
  return guarded([&] {
    Device& device = frame_device(frame);
    BP_CHECK(device.synchronous() || frame->stream, VALUE,
             "scratch: a kernel with BP_KERNEL_CALLS_OPS records no work that could use memory");
    size = std::max<uint64_t>(size, 1);
    StorageUses pending;  // on the frame's stream, which is in order
    *data = allocate(device, size, pending);
    cold().scratch.push_back({&device, *data, size, frame->ticket});
  });
}

bp_status call_op(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args, bp_value* outs,
                  int32_t n_outs) {
  return guarded([&] {
    CallGuard guard;  // a plugin may call from a thread of its own
    const OpEntry& entry = checked_entry(op);
    check_stack(entry.record->def.name);  // a kernel may call its own op, and no slow path lie between
    call(entry, args, n_args, outs, n_outs, frame ? frame->keys & kInnerKeys : kInnerKeys);
  });
}

bp_status call_op_donating(const bp_frame* frame, uint32_t op, const bp_value* args, int32_t n_args, bp_value* out,
                           uint64_t donated) {
  return guarded([&] {
    CallGuard guard;
    const OpEntry& entry = checked_entry(op);
    check_stack(entry.record->def.name);
    BP_CHECK(entry.n_results == 1, TYPE, entry.record->name, ": has ", entry.n_results,
             " results; call_op_donating is for ops with one");
    call_donating(entry, args, n_args, out, frame ? frame->keys & kInnerKeys : kInnerKeys, donated);
  });
}

bp_status alloc_list(const bp_frame*, bp_value* slot, uint32_t count, bp_tensor*** elements) {
  return guarded([&] {
    BP_CHECK(slot->tag == BP_TAG_ABSENT && !(slot->flags & (BP_VALUE_GIVEN | BP_VALUE_NOT_WANTED)), VALUE,
             "alloc_list: the slot is not empty");
    *slot = make_owned_list(count);
    *elements = owned_tensors(*slot);
  });
}

uint32_t find_op(const char* name) { return name ? backplane::find_op(name) : BP_NO_OP; }

bp_status make_view(const bp_frame*, bp_tensor* base, int32_t ndim, const int64_t* shape, const int64_t* strides,
                    uint64_t byte_offset, bp_tensor** out) {
  return guarded([&] {
    BP_CHECK(base && base->storage, VALUE, "make_view: the base has no data");
    BP_CHECK(ndim >= 0 && ndim <= kMaxRank, SHAPE, "make_view: rank ", ndim, " is not in 0..", kMaxRank);
    int64_t low = 0, high = 0;
    bool empty = false;
    for (int32_t i = 0; i < ndim; ++i) {
      BP_CHECK(shape[i] >= 0, SHAPE, "make_view: size ", shape[i], " of axis ", i, " is negative");
      empty = empty || shape[i] == 0;
      (strides[i] < 0 ? low : high) += (shape[i] - 1) * strides[i];
    }
    auto item = static_cast<int64_t>(kItemSize[base->dtype]);
    auto offset = static_cast<int64_t>(byte_offset);
    BP_CHECK(
        empty || (offset + low * item >= 0 && static_cast<uint64_t>(offset + (high + 1) * item) <= base->storage->size),
        VALUE, "make_view: bytes ", offset + low * item, " to ", offset + (high + 1) * item,
        " lie outside the storage of ", base->storage->size);
    retain(base->storage);
    *out = new_tensor_over(base->storage, base->dtype, ndim, shape, strides, byte_offset);
    (*out)->flags |= base->flags & kRepeats;
  });
}

// A registration is whole when register_all returns: what came later would be seen by halves, and taken back by nobody.
void check_registering(const bp_plugin_record* plugin, const char* what) {
  BP_CHECK(plugin, VALUE, what, ": the record is NULL; expected the one that register_all was given");
  BP_CHECK(!plugin->table.register_all || plugin->state == bp_plugin_record::State::kRegistering, BUSY, what,
           ": plugin \"", plugin->name, "\" calls it after its register_all has returned. Fix: register all there");
}

bp_status register_op_entry(bp_plugin_record* plugin, const bp_op_def* op) {
  return guarded([&] {
    check_registering(plugin, "register_op");
    register_op(plugin, *op);
  });
}
bp_status register_backend_entry(bp_plugin_record* plugin, const bp_backend_def* backend) {
  return guarded([&] {
    check_registering(plugin, "register_backend");
    register_backend(plugin, *backend);
  });
}
bp_status register_kernel_entry(bp_plugin_record* plugin, const bp_kernel_def* kernel) {
  return guarded([&] {
    check_registering(plugin, "register_kernel");
    register_kernel(plugin, *kernel);
  });
}
bp_status register_key_entry(bp_plugin_record* plugin, const bp_key_def* key) {
  return guarded([&] {
    check_registering(plugin, "register_key");
    register_key(plugin, *key);
  });
}

bp_status native(const bp_frame* frame, const char* kind, void** handle) {
  return guarded([&] {
    Device& device = frame_device(frame);
    const bp_backend_def& def = device.backend->def;
    BP_CHECK(BP_HAS(&def, bp_backend_def, native) && def.native, NOT_IMPLEMENTED, "native: backend ",
             device.backend->name, " offers no native handles");
    if (bp_status status = def.native(def.context, device.ordinal, frame->stream, kind, handle))
      throw_device_error(device, status, "native");
  });
}

}  // namespace

const bp_host host_table = {BP_HEADER(bp_host),
                            BP_ABI_MAJOR,
                            BP_ABI_MINOR,
                            set_error,
                            get_error,
                            log,
                            alloc_output,
                            scratch,
                            call_op,
                            find_op,
                            make_view,
                            [](bp_tensor* t) { retain(impl(t)); },
                            [](bp_tensor* t) { release(impl(t)); },
                            [](int64_t begin, int64_t end, int64_t grain, bp_parallel_body body, void* context) {
                              return parallel_for(begin, end, grain, body, context);
                            },
                            [] { return worker_count(); },
                            register_op_entry,
                            register_backend_entry,
                            register_kernel_entry,
                            register_key_entry,
                            native,
                            alloc_list,
                            call_op_donating,
                            host_extension};

}  // namespace backplane::core
