// The device table: each slot is a function that takes the backend and may throw. `data` is the number of a
// block, which Device makes up: see device.hpp.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "backplane/plugin/backend.hpp"
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

void stream_create(Backend& backend, int32_t ordinal, bp_stream** stream) {
  *stream = reinterpret_cast<bp_stream*>(new Stream(backend.device(ordinal)));
}
void BP_CALL stream_destroy(void*, int32_t, bp_stream* stream) { delete &stream_of(stream); }
void flush(Backend&, int32_t, bp_stream* stream, uint64_t ticket) { stream_of(stream).flush(ticket); }
void completed(Backend&, int32_t, bp_stream* stream, uint64_t* ticket) { *ticket = stream_of(stream).completed(); }

bp_status wait_for(Backend& backend, int32_t, bp_stream* stream, uint64_t ticket, uint64_t timeout, int32_t* done) {
  constexpr uint64_t kYear = 1'000'000'000ull * 3600 * 24 * 365;
  bp_status status = BP_OK;
  *done = stream_of(stream).wait(ticket, std::chrono::nanoseconds(std::min(timeout, kYear)), status) ? 1 : 0;
  if (status != BP_OK) backend.host()->set_error(status, "minimal: recorded work met bad data; see deferred_error");
  return status;
}
bp_status wait(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  int32_t done = 0;
  return wait_for(backend, ordinal, stream, ticket, UINT64_MAX, &done);
}

// Submissions of all streams run one after the other: flushed work comes before work that is recorded later.
void stream_wait(Backend&, int32_t, bp_stream*, bp_stream*, uint64_t) {}

void deferred_error(Backend&, int32_t, bp_stream* stream, bp_deferred_error* out) {
  DeferredError error{};
  const bool found = stream_of(stream).take_error(error);
  out->ticket = error.ticket;
  out->code = found ? BP_ERROR_DATA : BP_OK;
  std::snprintf(out->message, sizeof(out->message), "%s", error.message.c_str());
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
  def.stream_create = backend_slot<stream_create>;
  def.stream_destroy = stream_destroy;
  def.flush = backend_slot<flush>;
  def.completed = backend_slot<completed>;
  def.wait = backend_slot<wait>;
  def.stream_wait = backend_slot<stream_wait>;
  def.deferred_error = backend_slot<deferred_error>;
  def.wait_for = backend_slot<wait_for>;
  registrar.backend(def);
}

}  // namespace minimal
