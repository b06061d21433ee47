// The simulated accelerator with one fault, which the environment variable BROKEN_FAULT names; without it, without one.
// BROKEN_KERNEL names a kernel's fault beside that, BROKEN_WITHOUT an op that has no kernel.
//
// Each fault is one that a backend's author may well make. The kit has to find it: see test_faults.py.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "broken_extensions.hpp"
#include "broken_kernels.hpp"
#include "device.hpp"
#include "kernels/kernels.hpp"

namespace {

bp_backend_def right{};  // which the faulty table calls
const bp_host* right_host = nullptr;

// ---- the table ----

bp_status no_stream_wait(void*, int32_t, bp_stream*, bp_stream*, uint64_t) { return BP_OK; }
// The wait is work under the first ticket.
bp_status wait_with_a_ticket(void*, int32_t, bp_stream* stream, bp_stream* other, uint64_t ticket) {
  auto waited = reinterpret_cast<sim::Queue*>(other)->shared_from_this();  // it may be destroyed meanwhile
  reinterpret_cast<sim::Queue*>(stream)->record(1, [waited = std::move(waited), ticket] {
    while (waited->completed() < ticket) std::this_thread::yield();
  });
  return BP_OK;
}
// A stream that waits for another waits for ever.
bp_status endless_stream_wait(void*, int32_t, bp_stream* stream, bp_stream*, uint64_t) {
  reinterpret_cast<sim::Queue*>(stream)->record(0, [] {
    for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  return BP_OK;
}
// No fault: a device that cannot end its work early.
const void* no_extension(void*, const char*, uint32_t) { return nullptr; }
// After the first work.
bp_status endless_allocate(void* context, int32_t ordinal, uint64_t size, void** data) {
  static std::atomic<int> calls{0};
  while (++calls > 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return right.allocate(context, ordinal, size, data);
}
bp_status no_deferred_error(void*, int32_t, bp_stream*, bp_deferred_error*) { return BP_OK; }
// Errors are stated under the ticket of the next call.
bp_status next_ticket(void* context, int32_t ordinal, bp_stream* stream, bp_deferred_error* out) {
  const bp_status status = right.deferred_error(context, ordinal, stream, out);
  if (out->code != BP_OK) ++out->ticket;
  return status;
}
bp_status silent_wait(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  right.wait(context, ordinal, stream, ticket);
  return BP_OK;
}
bp_status silent_wait_for(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, uint64_t timeout,
                          int32_t* done) {
  right.wait_for(context, ordinal, stream, ticket, timeout, done);
  return BP_OK;
}
bp_status falling_completed(void* context, int32_t ordinal, bp_stream* stream, uint64_t* ticket) {
  static thread_local unsigned calls = 0;
  const bp_status status = right.completed(context, ordinal, stream, ticket);
  if (++calls % 2 && *ticket > 0) --*ticket;
  return status;
}
// Work goes to the queue when something waits for it.
bp_status no_flush(void*, int32_t, bp_stream*, uint64_t) { return BP_OK; }
// Recorded work has already started; a ticket without work has not.
bp_status slow_copy(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, uint64_t dst_offset,
                    void* src, uint64_t src_offset, uint64_t size) {
  auto& memory = static_cast<sim::Backend*>(context)->device(ordinal).memory;
  reinterpret_cast<sim::Queue*>(stream)->record(ticket, [=, &memory] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::memmove(memory.resolve(dst, dst_offset, size), memory.resolve(src, src_offset, size), size);
  });
  return BP_OK;
}
bp_status flush_of_the_first(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  return ticket == 1 ? right.flush(context, ordinal, stream, ticket) : BP_OK;
}
bp_status never_completed(void*, int32_t, bp_stream*, uint64_t* ticket) {
  *ticket = 0;
  return BP_OK;
}
// While copies take their time, and need their blocks.
bp_status completed_ahead(void* context, int32_t ordinal, bp_stream* stream, uint64_t* ticket) {
  const bp_status status = right.completed(context, ordinal, stream, ticket);
  *ticket += 1000;
  return status;
}
// Work counts as complete once it was submitted.
std::mutex submitted_mutex;
std::map<bp_stream*, uint64_t> submitted;
bp_status notes_flush(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  const std::lock_guard lock(submitted_mutex);
  submitted[stream] = ticket;
  return right.flush(context, ordinal, stream, ticket);
}
bp_status completed_at_flush(void*, int32_t, bp_stream* stream, uint64_t* ticket) {
  const std::lock_guard lock(submitted_mutex);
  *ticket = submitted[stream];
  return BP_OK;
}
bp_status null_stream(void*, int32_t, bp_stream** stream) {
  *stream = nullptr;
  return BP_OK;
}
bp_status no_deallocate(void*, int32_t, void*, uint64_t) { return BP_OK; }
bp_status null_memory(void* context, int32_t ordinal, uint64_t size, void** data) {
  if (right.allocate(context, ordinal, size, data) != BP_OK) *data = nullptr;
  return BP_OK;
}
bp_status copy_to_start(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, uint64_t,
                        void* src, uint64_t src_offset, uint64_t size) {
  return right.copy(context, ordinal, stream, ticket, dst, 0, src, src_offset, size);
}

bp_status no_name(void* context, int32_t ordinal, bp_device_properties* out) {
  const bp_status status = right.properties(context, ordinal, out);
  out->name[0] = 0;
  return status;
}
bp_status name_of_bytes(void* context, int32_t ordinal, bp_device_properties* out) {
  const bp_status status = right.properties(context, ordinal, out);
  std::strcpy(out->name, "\xff\xfe");
  return status;
}
// No fault: a device that does not compute in float64 and complex128.
bp_status lacks_float64(void* context, int32_t ordinal, bp_device_properties* out) {
  const bp_status status = right.properties(context, ordinal, out);
  out->lacks = BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX128);
  return status;
}
// No fault: nor in any complex dtype.
bp_status lacks_complex(void* context, int32_t ordinal, bp_device_properties* out) {
  const bp_status status = right.properties(context, ordinal, out);
  out->lacks = BP_DTYPE_BIT(BP_FLOAT64) | BP_MASK_COMPLEX;
  return status;
}
// No fault: nor in integers of 64 bits.
bp_status lacks_int64(void* context, int32_t ordinal, bp_device_properties* out) {
  const bp_status status = right.properties(context, ordinal, out);
  out->lacks = BP_DTYPE_BIT(BP_INT64) | BP_DTYPE_BIT(BP_UINT64);
  return status;
}
// Rounded down to what the device allocates by.
bp_status short_blocks(void* context, int32_t ordinal, uint64_t size, void** data) {
  return right.allocate(context, ordinal, std::max<uint64_t>(size & ~uint64_t{63}, 1), data);
}
// Offsets have 24 bits.
bp_status narrow_offset(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                        uint64_t dst_offset, const void* src, uint64_t size) {
  return right.copy_from_host(context, ordinal, stream, ticket, dst, dst_offset & 0xffffff, src, size);
}
// Large sources are read when the stream comes to the copy, and late enough for a busy machine to have changed them.
bp_status reads_late(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, uint64_t dst_offset,
                     const void* src, uint64_t size) {
  constexpr uint64_t kLarge = 4 << 20;
  if (size < kLarge) return right.copy_from_host(context, ordinal, stream, ticket, dst, dst_offset, src, size);
  auto& backend = *static_cast<sim::Backend*>(context);
  char* to = backend.device(ordinal).memory.resolve(dst, dst_offset, size);
  reinterpret_cast<sim::Queue*>(stream)->record(ticket, [=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::memcpy(to, src, size);
  });
  return BP_OK;
}
// More than there is, is promised up to what an address can have.
bp_status promises_memory(void* context, int32_t ordinal, uint64_t size, void** data) {
  constexpr uint64_t kAddresses = uint64_t{1} << 57;
  const bool promised = size > sim::device_memory() && size < kAddresses;
  return right.allocate(context, ordinal, promised ? 1 << 20 : size, data);
}

// Memory that was given back is not there again.
std::atomic<bool> gave_back{false};
bp_status gives_back(void* context, int32_t ordinal, void* data, uint64_t size) {
  gave_back = true;
  return right.deallocate(context, ordinal, data, size);
}
bp_status nothing_again(void* context, int32_t ordinal, uint64_t size, void** data) {
  if (!gave_back) return right.allocate(context, ordinal, size, data);
  right_host->set_error(BP_ERROR_DEVICE, "broken: memory that was given back is not there again");
  return BP_ERROR_DEVICE;
}
// One lock for the whole device, which a copy holds while it waits.
std::mutex copies;
bp_status copies_from_host_alone(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                                 uint64_t dst_offset, const void* src, uint64_t size) {
  const std::lock_guard lock(copies);
  const bp_status status = right.copy_from_host(context, ordinal, stream, ticket, dst, dst_offset, src, size);
  right.flush(context, ordinal, stream, ticket);
  return status == BP_OK ? right.wait(context, ordinal, stream, ticket) : status;
}
bp_status copies_to_host_alone(void* context, int32_t ordinal, bp_stream* stream, void* dst, void* src,
                               uint64_t src_offset, uint64_t size) {
  const std::lock_guard lock(copies);
  return right.copy_to_host(context, ordinal, stream, dst, src, src_offset, size);
}
bp_status flushes_alone(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  const std::lock_guard lock(copies);
  return right.flush(context, ordinal, stream, ticket);
}
bp_status waits_alone(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, uint64_t timeout,
                      int32_t* done) {
  const std::lock_guard lock(copies);
  *done = 1;
  return timeout ? right.wait(context, ordinal, stream, ticket) : BP_OK;
}
// Neither is heard while the device works.
bp_status no_abort(void*, int32_t) { return BP_OK; }
bp_status waits_to_the_end(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, uint64_t,
                           int32_t* done) {
  *done = 1;
  return right.wait(context, ordinal, stream, ticket);
}
bp_status ends_at_once(void*, int32_t, bp_stream*, uint64_t, uint64_t, int32_t* done) {
  *done = 1;
  return BP_OK;
}
// The device stays lost after its reset.
bp_status stays_lost(void* context, int32_t ordinal, bp_stream* stream, void* dst, void* src, uint64_t src_offset,
                     uint64_t size) {
  if (!was_reset) return right.copy_to_host(context, ordinal, stream, dst, src, src_offset, size);
  right_host->set_error(BP_ERROR_DEVICE_LOST, "broken: the device is lost");
  return BP_ERROR_DEVICE_LOST;
}

const std::map<std::string, std::function<void(bp_backend_def&)>> kTableFaults = {
    {"no_name", [](bp_backend_def& def) { def.properties = no_name; }},
    {"name_of_bytes", [](bp_backend_def& def) { def.properties = name_of_bytes; }},
    {"short_blocks", [](bp_backend_def& def) { def.allocate = short_blocks; }},
    {"narrow_offset", [](bp_backend_def& def) { def.copy_from_host = narrow_offset; }},
    {"reads_late", [](bp_backend_def& def) { def.copy_from_host = reads_late; }},
    {"promises_memory", [](bp_backend_def& def) { def.allocate = promises_memory; }},
    {"wait_with_a_ticket", [](bp_backend_def& def) { def.stream_wait = wait_with_a_ticket; }},
    {"lacks_more", [](bp_backend_def& def) { def.properties = lacks_complex; }},
    {"lacks_int64", [](bp_backend_def& def) { def.properties = lacks_int64; }},
    {"lacks", [](bp_backend_def& def) { def.properties = lacks_float64; }},
    {"stream_wait", [](bp_backend_def& def) { def.stream_wait = no_stream_wait; }},
    {"hung_wait", [](bp_backend_def& def) { def.stream_wait = endless_stream_wait; }},
    {"hangs_always", [](bp_backend_def& def) { def.allocate = endless_allocate; }},
    {"nothing_ends",
     [](bp_backend_def& def) {
       def.abort = nullptr;
       def.wait_for = nullptr;
       def.extension = no_extension;
     }},
    {"lost_error",
     [](bp_backend_def& def) {
       def.wait = silent_wait;
       def.wait_for = silent_wait_for;
       def.deferred_error = no_deferred_error;
     }},
    {"completed_falls", [](bp_backend_def& def) { def.completed = falling_completed; }},
    {"flush",
     [](bp_backend_def& def) {
       def.flush = no_flush;
       def.completed = never_completed;
     }},
    {"flush_without_work", [](bp_backend_def& def) { def.flush = flush_of_the_first; }},
    {"completed_ahead",
     [](bp_backend_def& def) {
       def.completed = completed_ahead;
       def.copy = slow_copy;
     }},
    {"completed_early",
     [](bp_backend_def& def) {
       def.flush = notes_flush;
       def.completed = completed_at_flush;
     }},
    {"null_stream", [](bp_backend_def& def) { def.stream_create = null_stream; }},
    {"deallocate", [](bp_backend_def& def) { def.deallocate = no_deallocate; }},
    {"null_memory", [](bp_backend_def& def) { def.allocate = null_memory; }},
    {"copy_offset", [](bp_backend_def& def) { def.copy = copy_to_start; }},
    {"no_order", [](bp_backend_def& def) { def.stream_wait = no_stream_wait; }},
    {"nothing_again",
     [](bp_backend_def& def) {
       def.allocate = nothing_again;
       def.deallocate = gives_back;
     }},
    {"unheard_abort", [](bp_backend_def& def) { def.abort = no_abort; }},
    {"timed_wait_early", [](bp_backend_def& def) { def.wait_for = ends_at_once; }},
    {"one_lock",
     [](bp_backend_def& def) {
       def.copy_from_host = copies_from_host_alone;
       def.copy_to_host = copies_to_host_alone;
       def.flush = flushes_alone;
       def.wait_for = waits_alone;
     }},
    {"late_error_lost",
     [](bp_backend_def& def) {
       def.wait = silent_wait;
       def.wait_for = silent_wait_for;
       def.deferred_error = no_deferred_error;
     }},
    {"next_ticket",
     [](bp_backend_def& def) {
       def.wait = silent_wait;
       def.wait_for = silent_wait_for;
       def.deferred_error = next_ticket;
     }},
    {"no_abort",
     [](bp_backend_def& def) {
       def.abort = no_abort;
       def.wait_for = waits_to_the_end;
     }},
    {"stays_lost", [](bp_backend_def& def) { def.copy_to_host = stays_lost; }},
};

// ---- registration ----

bp_status register_backend(bp_plugin_record* record, const bp_backend_def* def) {
  right = *def;
  bp_backend_def faulty = *def;
  if (const auto found = kTableFaults.find(fault()); found != kTableFaults.end()) found->second(faulty);
  break_extensions(right, faulty);
  return right_host->register_backend(record, &faulty);
}

void register_row(const backplane::plugin::Registrar& registrar, sim::Backend& backend, const sim::Table& table,
                  sim::Row row) {
  const char* without = std::getenv("BROKEN_WITHOUT");
  if (without && std::strcmp(without, row.op) == 0) return;
  const auto add = [&](const sim::Row& one) {
    registrar.kernel(backplane::plugin::kernel_row(one.op, backend.name(), one.fn, table.file, one.line,
                                                   {.dtypes = one.dtypes, .flags = one.flags, .context = &backend}));
  };
  if (std::strcmp(row.op, "bp::negative") == 0) negative_kernel = row.fn;
  const char* second = std::getenv("BROKEN_KERNEL");
  const KernelFault* found = kernel_fault(second ? second : fault());
  if (!found || std::strcmp(found->op, row.op) != 0) return add(row);
  const KernelFault& faulty = *found;
  right_kernel = row.fn;
  sim::Row rest = row;
  rest.dtypes &= ~faulty.only;
  if (faulty.fn) row.fn = faulty.fn;
  row.dtypes &= faulty.only;
  row.flags |= faulty.more_flags;
  add(row);
  if (rest.dtypes) add(rest);
}

void register_all(const backplane::plugin::Registrar& registrar) {
  static auto* const backend =
      new sim::Backend("broken", needs_handles() ? sim::Addressing::kHandle : sim::Addressing::kProtected, 1);
  right_host = registrar.host();
  static bp_host host;  // the backend keeps it
  host = *right_host;
  host.register_backend = register_backend;
  backend->register_on(backplane::plugin::Registrar(&host, registrar.record()));
  for (const sim::Table& table : sim::all_kernels())
    for (const sim::Row& row : table.rows) register_row(registrar, *backend, table, row);
}

}  // namespace

BP_DEFINE_PLUGIN("broken", "1.0", register_all)
