// The backend's table: each slot is a function that may throw, behind an edge that turns exceptions into statuses.
#include <cstdio>
#include <cstring>
#include <string_view>

#include "backplane/plugin/backend.hpp"
#include "extensions.hpp"
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
  out->alignment = 1;
  out->lacks = Device::lacks(physical);
  out->dl_device_type = kDLExtDev;  // what others hand over as kDLVulkan is a handle, not an address
}

void allocate(Backend& backend, int32_t ordinal, uint64_t size, void** data) {
  *data = reinterpret_cast<void*>(backend.device(ordinal).allocate(size));
}

void deallocate(Backend& backend, int32_t ordinal, void* data, uint64_t) {
  backend.device(ordinal).deallocate(reinterpret_cast<uint64_t>(data));
}

void copy_from_host(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset,
                    const void* src, uint64_t size) {
  const Place target = backend.device(ordinal).place(reinterpret_cast<uint64_t>(dst) + dst_offset, size);
  as_stream(stream).upload(target, static_cast<const char*>(src), size);
}

void copy_to_host(Backend& backend, int32_t ordinal, bp_stream* stream, void* dst, void* src, uint64_t src_offset,
                  uint64_t size) {
  const Place source = backend.device(ordinal).place(reinterpret_cast<uint64_t>(src) + src_offset, size);
  as_stream(stream).download(static_cast<char*>(dst), source, size);
}

void copy(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset, void* src,
          uint64_t src_offset, uint64_t size) {
  const Device& device = backend.device(ordinal);
  as_stream(stream).copy(device.place(reinterpret_cast<uint64_t>(dst) + dst_offset, size),
                         device.place(reinterpret_cast<uint64_t>(src) + src_offset, size), size);
}

void stream_create(Backend& backend, int32_t ordinal, bp_stream** stream) {
  *stream = reinterpret_cast<bp_stream*>(&backend.device(ordinal).make_stream());
}

void BP_CALL stream_destroy(void*, int32_t, bp_stream* stream) {
  as_stream(stream).device().destroy_stream(as_stream(stream));
}

void flush(Backend&, int32_t, bp_stream* stream, uint64_t ticket) { as_stream(stream).flush(ticket); }

void completed(Backend&, int32_t, bp_stream* stream, uint64_t* ticket) { *ticket = as_stream(stream).completed(); }

// The host has flushed the ticket; for who has not, waiting does, since nobody else would.
bp_status wait_for(Backend& backend, int32_t, bp_stream* stream, uint64_t ticket, uint64_t timeout, int32_t* done) {
  as_stream(stream).flush(ticket);
  *done = as_stream(stream).wait_ticket(ticket, timeout);
  const auto fault = *done ? as_stream(stream).fault(false) : std::nullopt;
  if (!fault) return BP_OK;
  backend.host()->set_error(BP_ERROR_DATA, message_of(*fault).c_str());
  return BP_ERROR_DATA;
}

bp_status wait(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  int32_t done = 0;
  return wait_for(backend, ordinal, stream, ticket, UINT64_MAX, &done);
}

void stream_wait(Backend&, int32_t, bp_stream* stream, bp_stream* other, uint64_t ticket) {
  as_stream(stream).wait_behind(as_stream(other), ticket);
}

void deferred_error(Backend&, int32_t, bp_stream* stream, bp_deferred_error* out) {
  const auto fault = as_stream(stream).fault(true);
  out->ticket = fault ? fault->ticket : 0;
  out->code = fault ? BP_ERROR_DATA : BP_OK;
  std::snprintf(out->message, sizeof(out->message), "%s", fault ? message_of(*fault).c_str() : "");
}

// What tensors use of the blocks, the host's pool knows.
void memory_stats(Backend& backend, int32_t ordinal, bp_memory_stats* out) {
  const Device& device = backend.device(ordinal);
  out->in_use = out->reserved = device.reserved();
  out->peak = device.peak();
}

// The handles that another plugin's kernel needs. "VkCommandBuffer" is the stream's open batch, behind a barrier; a
// tensor's `data` is its storage's device address. "Counts" is the Counts of runtime/device.hpp.
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
    *handle = as_stream(stream).record();
  } else if (wanted == "Counts") {
    *handle = &device.counts;
  } else {
    ::backplane::detail::fail(BP_ERROR_VALUE, "vulkan: no native handle of kind \"", kind,
                              "\"; expected VkInstance, VkPhysicalDevice, VkDevice, VkQueue, Counts "
                              "and, of a stream, VkCommandBuffer");
  }
}

}  // namespace

bp_backend_def Backend::table() {
  bp_backend_def def{};
  def.header = BP_HEADER(bp_backend_def);
  def.name = "vulkan";
  def.flags = BP_BACKEND_ADDRESSABLE | BP_BACKEND_SUBALLOCATABLE;
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
  def.extension = find_extension;
  def.wait_for = plugin::backend_slot<wait_for>;
  return def;
}

}  // namespace backplane::vulkan
