// The backend's table: each slot is a function that may throw, behind an edge that turns exceptions into statuses.
#include <cstdio>
#include <cstring>
#include <string_view>

#include "backplane/plugin/backend.hpp"
#include "runtime/backend.hpp"

namespace backplane::vulkan {
namespace {

void device_count(Backend& backend, int32_t* count) {
  std::string reason;
  *count = backend.count(reason);
  if (*count == 0) backend.host()->set_error(BP_ERROR_DEVICE, reason.c_str());
}

void properties(Backend& backend, int32_t ordinal, bp_device_properties* out) {
  const VkPhysicalDevice physical = backend.physical(ordinal);
  VkPhysicalDeviceProperties found;
  vkGetPhysicalDeviceProperties(physical, &found);
  std::snprintf(out->name, sizeof(out->name), "%.*s", static_cast<int>(sizeof(out->name)) - 1, found.deviceName);
  out->total_memory = Device::total_memory(physical);
  out->alignment = 4;  // kernels address words of 32 bits
  out->lacks = BP_MASK_ANY & ~BP_DTYPE_BIT(BP_FLOAT32);
  out->dl_device_type = kDLVulkan;
}

void allocate(Backend& backend, int32_t ordinal, uint64_t size, void** data) {
  Device& device = backend.device(ordinal);
  std::lock_guard lock(device.mutex);
  *data = reinterpret_cast<void*>(device.allocate(size));
}

void deallocate(Backend& backend, int32_t ordinal, void* data, uint64_t) {
  Device& device = backend.device(ordinal);
  std::lock_guard lock(device.mutex);
  device.deallocate(reinterpret_cast<VkBuffer>(data));
}

void copy_from_host(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset,
                    const void* src, uint64_t size) {
  Device& device = backend.device(ordinal);
  std::lock_guard lock(device.mutex);
  as_stream(stream).upload(device.block(dst, dst_offset, size), dst_offset, src, size);
}

void copy_to_host(Backend& backend, int32_t ordinal, bp_stream* stream, void* dst, void* src, uint64_t src_offset,
                  uint64_t size) {
  Device& device = backend.device(ordinal);
  std::unique_lock lock(device.mutex);
  const Block& source = device.block(src, src_offset, size);
  const Block staging = device.make_staging(size);
  struct Owner {
    Device& device;
    std::unique_lock<std::mutex>& lock;
    const Block& block;
    ~Owner() {
      if (!lock) lock.lock();
      device.destroy(block);
    }
  } owner{device, lock, staging};
  const uint64_t batch = as_stream(stream).download(staging, source, src_offset, size);
  lock.unlock();
  as_stream(stream).wait_batch(batch);
  std::memcpy(dst, staging.mapped, size);
}

void copy(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset, void* src,
          uint64_t src_offset, uint64_t size) {
  Device& device = backend.device(ordinal);
  std::lock_guard lock(device.mutex);
  as_stream(stream).copy(device.block(dst, dst_offset, size), dst_offset, device.block(src, src_offset, size),
                         src_offset, size);
}

void stream_create(Backend& backend, int32_t ordinal, bp_stream** stream) {
  Device& device = backend.device(ordinal);
  std::lock_guard lock(device.mutex);
  *stream = reinterpret_cast<bp_stream*>(new Stream(device));
}

void BP_CALL stream_destroy(void* context, int32_t ordinal, bp_stream* stream) {
  Device& device = static_cast<Backend*>(context)->device(ordinal);
  std::lock_guard lock(device.mutex);
  delete &as_stream(stream);
}

void flush(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  Device& device = backend.device(ordinal);
  std::lock_guard lock(device.mutex);
  as_stream(stream).flush(ticket);
}

void completed(Backend&, int32_t, bp_stream* stream, uint64_t* ticket) { *ticket = as_stream(stream).completed(); }

// The host has flushed the ticket.
void wait(Backend&, int32_t, bp_stream* stream, uint64_t ticket) { as_stream(stream).wait_ticket(ticket); }

void stream_wait(Backend& backend, int32_t ordinal, bp_stream* stream, bp_stream* other, uint64_t ticket) {
  Device& device = backend.device(ordinal);
  std::lock_guard lock(device.mutex);
  as_stream(stream).wait_behind(as_stream(other), ticket);
}

// Vulkan reports failed work only by losing the device, which the failing wait itself reports.
void deferred_error(Backend&, int32_t, bp_stream*, bp_deferred_error* out) {
  out->ticket = 0;
  out->code = BP_OK;
  out->message[0] = 0;
}

void memory_stats(Backend& backend, int32_t ordinal, bp_memory_stats* out) {
  Device& device = backend.device(ordinal);
  std::lock_guard lock(device.mutex);
  const MemoryUse use = device.memory_use();
  out->in_use = use.in_use;
  out->peak = use.peak;
  out->reserved = use.in_use;
}

// The handles that another plugin's kernel needs. "VkCommandBuffer" is the stream's open batch, behind a barrier; a
// tensor's `data` is its VkBuffer.
void native(Backend& backend, int32_t ordinal, bp_stream* stream, const char* kind, void** handle) {
  Device& device = backend.device(ordinal);
  const std::string_view wanted = kind;
  if (wanted == "VkInstance") {
    *handle = backend.instance();
  } else if (wanted == "VkPhysicalDevice") {
    *handle = device.physical();
  } else if (wanted == "VkDevice") {
    *handle = device.handle();
  } else if (wanted == "VkQueue") {
    *handle = device.queue();
  } else if (wanted == "VkCommandBuffer" && stream) {
    std::lock_guard lock(device.mutex);
    *handle = as_stream(stream).record();
  } else {
    ::backplane::detail::fail(BP_ERROR_VALUE, "vulkan: no native handle of kind \"", kind,
                              "\"; there are VkInstance, VkPhysicalDevice, VkDevice, VkQueue and, of a stream, "
                              "VkCommandBuffer");
  }
}

}  // namespace

bp_backend_def Backend::table() {
  bp_backend_def def{};
  def.header = BP_HEADER(bp_backend_def);
  def.name = "vulkan";
  def.context = this;
  def.device_count = plugin::backend_slot<device_count>;
  def.properties = plugin::backend_slot<properties>;
  def.allocate = plugin::backend_slot<allocate>;
  def.deallocate = plugin::backend_slot<deallocate>;
  def.copy_from_host = plugin::backend_slot<copy_from_host>;
  def.copy_to_host = plugin::backend_slot<copy_to_host>;
  def.copy = plugin::backend_slot<copy>;
  def.stream_create = plugin::backend_slot<stream_create>;
  def.stream_destroy = stream_destroy;
  def.flush = plugin::backend_slot<flush>;
  def.completed = plugin::backend_slot<completed>;
  def.wait = plugin::backend_slot<wait>;
  def.stream_wait = plugin::backend_slot<stream_wait>;
  def.deferred_error = plugin::backend_slot<deferred_error>;
  def.memory_stats = plugin::backend_slot<memory_stats>;
  def.native = plugin::backend_slot<native>;
  return def;
}

}  // namespace backplane::vulkan
