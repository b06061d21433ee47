// The device table: each slot is a function that takes the backend and may throw. `data` is the number of a
// block, which Device makes up: see device.hpp.
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
  const WGPUAdapter adapter = backend.adapter(ordinal);
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  wgpuAdapterGetInfo(adapter, &info);
  std::snprintf(out->name, sizeof(out->name), "%.*s", static_cast<int>(std::min<size_t>(info.device.length, 100)),
                info.device.data);
  wgpuAdapterInfoFreeMembers(info);
  out->total_memory = 0;  // WebGPU does not say
  out->largest_block = Device::largest_block_of(adapter);
  out->copy_granule = 4;
  out->alignment = 1;
  out->lacks = BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX128);
  out->dl_device_type = kDLExtDev;  // DLPack's kDLWebGPU stands for a handle
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
  stream_of(stream).copy(backend.device(ordinal).place(address_of(dst, dst_offset)), staged.place, size);
}

void copy_to_host(Backend& backend, int32_t ordinal, bp_stream* stream, void* dst, void* src, uint64_t src_offset,
                  uint64_t size) {
  stream_of(stream).read(dst, backend.device(ordinal).place(address_of(src, src_offset)), size);
}

void copy(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset, void* src,
          uint64_t src_offset, uint64_t size) {
  Device& device = backend.device(ordinal);
  const Place to = device.place(address_of(dst, dst_offset)), from = device.place(address_of(src, src_offset));
  if (to.buffer != from.buffer) return stream_of(stream).copy(to, from, size);
  // WebGPU copies nothing within a buffer.
  const Buffer between = device.make_buffer(size, WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst);
  stream_of(stream).copy({between.get(), 0, size}, from, size);
  stream_of(stream).copy(to, {between.get(), 0, size}, size);
}

}  // namespace

void Backend::register_on(const backplane::plugin::Registrar& registrar) {
  using backplane::plugin::backend_slot;
  host_ = registrar.host();
  bp_backend_def def{};
  def.header = BP_HEADER(bp_backend_def);
  def.name = kName;
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
