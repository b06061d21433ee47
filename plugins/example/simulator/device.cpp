// The backend table: each slot is a function that may throw, behind an edge that turns exceptions into statuses.
#include "device.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "backplane/plugin/backend.hpp"
#include "dtypes.hpp"

namespace sim {
namespace {

constexpr uint64_t kDefaultMemory = 8ull << 30;

Queue& queue(bp_stream* stream) { return *reinterpret_cast<Queue*>(stream); }

void device_count(Backend&, int32_t* count) { *count = kDeviceCount; }

void properties(Backend& backend, int32_t ordinal, bp_device_properties* out) {
  std::snprintf(out->name, sizeof(out->name), "simulated accelerator %d (%s)", ordinal,
                backend.addressing() == Addressing::kProtected ? "protected memory" : "memory handles");
  out->total_memory = device_memory();
  if (std::getenv("BACKPLANE_SIM_WITHOUT_FLOAT64")) out->lacks = BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX128);
  out->alignment = backend.alignment();
  out->dl_device_type = kDLExtDev;
}

void allocate(Backend& backend, int32_t ordinal, uint64_t size, void** data) {
  Device& device = backend.device(ordinal);
  device.lost.check();
  *data = device.memory.allocate(size);
}

void deallocate(Backend& backend, int32_t ordinal, void* data, uint64_t) {
  backend.device(ordinal).memory.release(data);
}

void copy_from_host(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                    uint64_t dst_offset, const void* src, uint64_t size) {
  char* target = backend.device(ordinal).memory.resolve(dst, dst_offset, size);
  const char* bytes = static_cast<const char*>(src);
  queue(stream).record(ticket, [target, copy = std::vector<char>(bytes, bytes + size)] {
    std::memcpy(target, copy.data(), copy.size());
  });
}

void copy_to_host(Backend& backend, int32_t ordinal, bp_stream* stream, void* dst, void* src, uint64_t src_offset,
                  uint64_t size) {
  const char* source = backend.device(ordinal).memory.resolve(src, src_offset, size);
  queue(stream).run_and_wait([=] { std::memcpy(dst, source, size); });
}

void copy(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, uint64_t dst_offset,
          void* src, uint64_t src_offset, uint64_t size) {
  Device& device = backend.device(ordinal);
  char* target = device.memory.resolve(dst, dst_offset, size);
  const char* source = device.memory.resolve(src, src_offset, size);
  queue(stream).record(ticket, [=] { std::memmove(target, source, size); });
}

void stream_create(Backend& backend, int32_t ordinal, bp_stream** stream) {
  *stream = reinterpret_cast<bp_stream*>(&backend.device(ordinal).add_queue(0));
}

void BP_CALL stream_destroy(void* context, int32_t ordinal, bp_stream* stream) {
  Device& device = static_cast<Backend*>(context)->device(ordinal);
  std::shared_ptr<Queue> last;  // ends outside the lock: it waits for its thread
  std::lock_guard lock(device.mutex);
  const auto found = device.queues.find(&queue(stream));
  if (found == device.queues.end()) return;
  last = std::move(found->second);
  device.queues.erase(found);
}

void flush(Backend&, int32_t, bp_stream* stream, uint64_t ticket) { queue(stream).flush(ticket); }

void completed(Backend&, int32_t, bp_stream* stream, uint64_t* ticket) { *ticket = queue(stream).completed(); }

bp_status wait(Backend& backend, int32_t, bp_stream* stream, uint64_t ticket) {
  const bp_status status = queue(stream).wait(ticket);
  if (status != BP_OK) backend.host()->set_error(status, "sim: recorded work failed; see deferred_error");
  return status;
}

bp_status wait_for(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, uint64_t timeout,
                   int32_t* done) {
  *done = queue(stream).wait_for(ticket, std::chrono::nanoseconds(timeout));
  return *done ? wait(backend, ordinal, stream, ticket) : BP_OK;
}

// Queues drop their work.
void abort(Backend& backend, int32_t ordinal) { backend.device(ordinal).lost.set("it was given up"); }

void stream_wait(Backend&, int32_t, bp_stream* stream, bp_stream* other, uint64_t ticket) {
  queue(stream).record_wait(queue(other), ticket);
}

void deferred_error(Backend&, int32_t, bp_stream* stream, bp_deferred_error* out) {
  const auto error = queue(stream).take_error();
  out->ticket = error ? error->ticket : 0;
  out->code = error ? error->code : BP_OK;
  std::snprintf(out->message, sizeof(out->message), "%s", error ? error->message.c_str() : "");
}

void memory_stats(Backend& backend, int32_t ordinal, bp_memory_stats* out) {
  const MemoryStats stats = backend.device(ordinal).memory.stats();
  out->in_use = stats.in_use;
  out->peak = stats.peak;
  out->reserved = device_memory();
}

}  // namespace

Queue& Device::add_queue(int32_t priority) {
  auto made = std::make_shared<Queue>(lost, turns, priority);
  std::lock_guard lock(mutex);
  Queue* found = made.get();
  return *queues.emplace(found, std::move(made)).first->second;
}

Queue& Device::add_queue_over(Queue& base) {
  std::lock_guard lock(mutex);
  const auto found = queues.find(&base);
  BP_CHECK(found != queues.end(), VALUE, "sim: ", &base, " is not a stream of this device");
  auto made = std::make_shared<Queue>(lost, turns, found->second);
  Queue* front = made.get();
  return *queues.emplace(front, std::move(made)).first->second;
}

void Device::give(void* data, bp_stream* const* streams, const uint64_t* tickets, int32_t n) {
  Given block{data, {}};
  for (int32_t i = 0; i < n; ++i) block.uses.emplace_back(queue(streams[i]).shared_from_this(), tickets[i]);
  {
    std::lock_guard lock(given_mutex_);
    given_.push_back(std::move(block));
  }
  release_ended();
}

void Device::release_ended() {
  std::lock_guard lock(given_mutex_);
  std::erase_if(given_, [&](const Given& block) {
    for (const auto& [queue, ticket] : block.uses)
      if (queue->completed() < ticket) return false;
    memory.release(block.data);
    return true;
  });
}

void Device::reset() {
  lost.set("it is being reset");  // what waits in queues is dropped
  std::unordered_map<Queue*, std::shared_ptr<Queue>> ended;
  {
    std::lock_guard lock(mutex);
    ended.swap(queues);
  }
  given_.clear();
  ended.clear();
  memory.clear();
  fast_memory = 0;
  lost.clear();
}

uint64_t device_memory() {
  const char* bytes = std::getenv("BACKPLANE_SIM_MEMORY");
  return bytes ? std::strtoull(bytes, nullptr, 10) : kDefaultMemory;
}

void Backend::register_on(const backplane::plugin::Registrar& registrar) {
  host_ = registrar.host();
  bp_backend_def def{};
  def.header = BP_HEADER(bp_backend_def);
  def.name = name_;
  def.flags = addressing_ == Addressing::kProtected ? BP_BACKEND_ADDRESSABLE : 0;
  def.context = this;
  def.device_count = backplane::plugin::backend_slot<device_count>;
  def.properties = backplane::plugin::backend_slot<properties>;
  def.allocate = backplane::plugin::backend_slot<allocate>;
  def.deallocate = backplane::plugin::backend_slot<deallocate>;
  def.copy_from_host = backplane::plugin::backend_slot<copy_from_host>;
  def.copy_to_host = backplane::plugin::backend_slot<copy_to_host>;
  def.copy = backplane::plugin::backend_slot<copy>;
  def.stream_create = backplane::plugin::backend_slot<stream_create>;
  def.stream_destroy = stream_destroy;
  def.flush = backplane::plugin::backend_slot<flush>;
  def.completed = backplane::plugin::backend_slot<completed>;
  def.wait = backplane::plugin::backend_slot<wait>;
  def.stream_wait = backplane::plugin::backend_slot<stream_wait>;
  def.deferred_error = backplane::plugin::backend_slot<deferred_error>;
  def.memory_stats = backplane::plugin::backend_slot<memory_stats>;
  def.extension = extension;
  def.abort = backplane::plugin::backend_slot<abort>;
  def.wait_for = backplane::plugin::backend_slot<wait_for>;
  registrar.backend(def);
}

Device& Backend::device(int32_t ordinal) {
  BP_CHECK(ordinal >= 0 && ordinal < kDeviceCount, VALUE, name_, ": no device ", ordinal, "; there are ", kDeviceCount);
  std::lock_guard lock(mutex_);
  auto& device = devices_[static_cast<size_t>(ordinal)];
  if (!device) device = std::make_unique<Device>(addressing_);
  return *device;
}

}  // namespace sim
