// The device table: each slot is a function that takes the backend and may throw. `data` is an address on the device.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "backplane/plugin/stream_slots.hpp"
#include "kernels/kernels.hpp"
#include "runtime/backend.hpp"

namespace minimal {
namespace {

uint64_t address_of(const void* data, uint64_t offset) { return reinterpret_cast<uint64_t>(data) + offset; }

void device_count(Backend& backend, int32_t* count) { *count = backend.count(); }

void properties(Backend& backend, int32_t ordinal, bp_device_properties* out) {
  const VkPhysicalDevice physical = backend.physical(ordinal);
  VkPhysicalDeviceProperties found;
  vkGetPhysicalDeviceProperties(physical, &found);
  std::snprintf(out->name, sizeof(out->name), "%.100s", found.deviceName);
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i)
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
      out->total_memory = std::max<uint64_t>(out->total_memory, memory.memoryHeaps[i].size);
  out->alignment = 1;
  out->lacks = Device::has_float64(physical) ? 0 : BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX128);
  out->dl_device_type = kDLExtDev;  // DLPack's kDLVulkan stands for a handle, not for an address
}

void allocate(Backend& backend, int32_t ordinal, uint64_t size, void** data) {
  *data = reinterpret_cast<void*>(backend.device(ordinal).allocate(size));
}
void deallocate(Backend& backend, int32_t ordinal, void* data, uint64_t) {
  backend.device(ordinal).deallocate(address_of(data, 0));
}

void copy_from_host(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset,
                    const void* src, uint64_t size) {
  const Staged staged = stream_of(stream).stage(size);
  std::memcpy(staged.mapped, src, size);
  stream_of(stream).copy(backend.device(ordinal).place(address_of(dst, dst_offset), size), staged.place, size);
}

void copy_to_host(Backend& backend, int32_t ordinal, bp_stream* stream, void* dst, void* src, uint64_t src_offset,
                  uint64_t size) {
  const Staged staged = stream_of(stream).stage(size);
  stream_of(stream).copy(staged.place, backend.device(ordinal).place(address_of(src, src_offset), size), size);
  stream_of(stream).finish();  // the batch's memory stands until another one is opened
  std::memcpy(dst, staged.mapped, size);
}

void copy(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset, void* src,
          uint64_t src_offset, uint64_t size) {
  Device& device = backend.device(ordinal);
  const uint64_t to = address_of(dst, dst_offset), from = address_of(src, src_offset);
  if (std::max(to, from) - std::min(to, from) >= size)
    return stream_of(stream).copy(device.place(to, size), device.place(from, size), size);
  const Staged between = stream_of(stream).stage(size);  // Vulkan copies no overlapping regions
  stream_of(stream).copy(between.place, device.place(from, size), size);
  stream_of(stream).copy(device.place(to, size), between.place, size);
}

}  // namespace

void Backend::register_on(const backplane::plugin::Registrar& registrar) {
  using backplane::plugin::backend_slot;
  host_ = registrar.host();
  bp_backend_def def{};
  def.header = BP_HEADER(bp_backend_def);
  def.name = kName;
  def.flags = BP_BACKEND_ADDRESSABLE | BP_BACKEND_SUBALLOCATABLE;
  def.context = this;
  def.device_count = backend_slot<device_count>;
  def.properties = backend_slot<properties>;
  def.allocate = backend_slot<allocate>;
  def.deallocate = backend_slot<deallocate>;
  def.copy_from_host = backend_slot<copy_from_host>;
  def.copy_to_host = backend_slot<copy_to_host>;
  def.copy = backend_slot<copy>;
  backplane::plugin::StreamSlots<Backend, Stream>::fill(def);
  registrar.backend(def);
}

}  // namespace minimal
