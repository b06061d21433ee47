// The backend table: each slot is a function that may throw, behind an edge that turns exceptions into statuses.
#include "device.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "backplane/plugin/backend.hpp"

namespace unkind {
namespace {

using backplane::plugin::backend_slot;
constexpr uint64_t kDefaultMemory = uint64_t{1} << 30;

uint64_t bytes_of_environment(const char* name, uint64_t otherwise) {
  const char* bytes = std::getenv(name);
  return bytes ? std::strtoull(bytes, nullptr, 10) : otherwise;
}

uint64_t largest_block() { return bytes_of_environment("BACKPLANE_UNKIND_LARGEST_BLOCK", 0); }  // 0: any

void device_count(Backend&, int32_t* count) { *count = kDeviceCount; }

void properties(Backend& backend, int32_t ordinal, bp_device_properties* out) {
  std::snprintf(out->name, sizeof(out->name), "unkind accelerator %d (%s)", ordinal,
                backend.addressable() ? "addresses" : "memory handles, a pool of its own");
  out->total_memory = device_memory();
  out->alignment = backend.alignment();
  out->dl_device_type = kDLExtDev;
  out->largest_block = largest_block();
}

void allocate(Backend& backend, int32_t ordinal, uint64_t size, void** data) {
  if (largest_block() && size > largest_block())
    backend.scheduler().findings().fail("a block of " + std::to_string(size) +
                                        " bytes is asked for, which is too large");
  *data = backend.scheduler().allocate(backend.device(ordinal), size);
}

void deallocate(Backend& backend, int32_t ordinal, void* data, uint64_t) {
  backend.scheduler().release(backend.device(ordinal), data);
}

void copy_from_host(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                    uint64_t dst_offset, const void* src, uint64_t size) {
  Item item;
  item.ticket = ticket;
  item.what = "copy_from_host";
  char* target = backend.scheduler().resolve(backend.device(ordinal), {dst, dst_offset, size, true}, item.ranges);
  const char* bytes = static_cast<const char*>(src);
  item.work = [target, copy = std::vector<char>(bytes, bytes + size)] {
    std::memcpy(target, copy.data(), copy.size());
  };
  backend.scheduler().record(queue_of(stream), std::move(item));
}

void copy_to_host(Backend& backend, int32_t ordinal, bp_stream* stream, void* dst, void* src, uint64_t src_offset,
                  uint64_t size) {
  Item item;
  item.what = "copy_to_host";
  const char* source =
      backend.scheduler().resolve(backend.device(ordinal), {src, src_offset, size, false}, item.ranges);
  const auto bytes = std::make_shared<std::vector<char>>(size);  // where a lost device no longer writes to `dst`
  item.work = [=] { std::memcpy(bytes->data(), source, size); };
  backend.scheduler().run_and_wait(queue_of(stream), std::move(item));
  std::memcpy(dst, bytes->data(), size);
}

void copy(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, uint64_t dst_offset,
          void* src, uint64_t src_offset, uint64_t size) {
  Device& device = backend.device(ordinal);
  Item item;
  item.ticket = ticket;
  item.what = "copy";
  const char* source = backend.scheduler().resolve(device, {src, src_offset, size, false}, item.ranges);
  char* target = backend.scheduler().resolve(device, {dst, dst_offset, size, true}, item.ranges);
  item.work = [=] { std::memmove(target, source, size); };
  backend.scheduler().record(queue_of(stream), std::move(item));
}

void stream_create(Backend& backend, int32_t ordinal, bp_stream** stream) {
  *stream = stream_of(*backend.scheduler().add_queue(backend.device(ordinal), 0));
}

void BP_CALL stream_destroy(void* context, int32_t, bp_stream* stream) {
  static_cast<Backend*>(context)->scheduler().close(queue_of(stream).shared_from_this());
}

void flush(Backend& backend, int32_t, bp_stream* stream, uint64_t ticket) {
  backend.scheduler().flush(queue_of(stream), ticket);
}

void completed(Backend& backend, int32_t, bp_stream* stream, uint64_t* ticket) {
  *ticket = backend.scheduler().completed(queue_of(stream));
}

bp_status wait(Backend& backend, int32_t, bp_stream* stream, uint64_t ticket) {
  const bp_status status = backend.scheduler().wait(queue_of(stream), ticket);
  if (status != BP_OK) backend.host()->set_error(status, "unkind: recorded work failed; see deferred_error");
  return status;
}

bp_status wait_for(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, uint64_t timeout,
                   int32_t* done) {
  *done = backend.scheduler().wait_for(queue_of(stream), ticket, std::chrono::nanoseconds(timeout));
  return *done ? wait(backend, ordinal, stream, ticket) : BP_OK;
}

void abort(Backend& backend, int32_t ordinal) { backend.scheduler().lose(backend.device(ordinal), "it was given up"); }

void stream_wait(Backend& backend, int32_t, bp_stream* stream, bp_stream* other, uint64_t ticket) {
  backend.scheduler().record_wait(queue_of(stream), queue_of(other), ticket);
}

void deferred_error(Backend& backend, int32_t, bp_stream* stream, bp_deferred_error* out) {
  DeferredError error{0, BP_OK, {}};
  backend.scheduler().take_error(queue_of(stream), error);
  out->ticket = error.ticket;
  out->code = error.code;
  std::snprintf(out->message, sizeof(out->message), "%s", error.message.c_str());
}

void memory_stats(Backend& backend, int32_t ordinal, bp_memory_stats* out) {
  const MemoryUse use = backend.scheduler().memory_use(backend.device(ordinal));
  out->in_use = use.now;
  out->peak = use.peak;
  out->reserved = device_memory();
}

}  // namespace

uint64_t device_memory() { return bytes_of_environment("BACKPLANE_UNKIND_MEMORY", kDefaultMemory); }

void Backend::register_on(const backplane::plugin::Registrar& registrar) {
  host_ = registrar.host();
  bp_backend_def def{};
  def.header = BP_HEADER(bp_backend_def);
  def.name = name_;
  def.flags = addressable_ ? BP_BACKEND_ADDRESSABLE | BP_BACKEND_SUBALLOCATABLE : 0;
  def.context = this;
  def.device_count = backend_slot<device_count>;
  def.properties = backend_slot<properties>;
  def.allocate = backend_slot<allocate>;
  def.deallocate = backend_slot<deallocate>;
  def.copy_from_host = backend_slot<copy_from_host>;
  def.copy_to_host = backend_slot<copy_to_host>;
  def.copy = backend_slot<copy>;
  def.stream_create = backend_slot<stream_create>;
  def.stream_destroy = stream_destroy;
  def.flush = backend_slot<flush>;
  def.completed = backend_slot<completed>;
  def.wait = backend_slot<wait>;
  def.stream_wait = backend_slot<stream_wait>;
  def.deferred_error = backend_slot<deferred_error>;
  def.memory_stats = backend_slot<memory_stats>;
  def.extension = extension;
  if (addressable_) {  // the other one leaves out what is optional
    def.abort = backend_slot<abort>;
    def.wait_for = backend_slot<wait_for>;
  }
  registrar.backend(def);
}

Device& Backend::device(int32_t ordinal) {
  BP_CHECK(ordinal >= 0 && ordinal < kDeviceCount, VALUE, name_, ": no device ", ordinal, "; there are ", kDeviceCount);
  std::lock_guard lock(mutex_);
  auto& device = devices_[static_cast<size_t>(ordinal)];
  if (!device) device = std::make_unique<Device>(addressable_, device_memory());
  return *device;
}

}  // namespace unkind
