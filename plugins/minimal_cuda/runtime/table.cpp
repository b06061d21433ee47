// The device table: each slot is a function that takes the backend and may throw. `data` is an address on the device.
#include <algorithm>
#include <cstring>

#include "backplane/plugin/backend.hpp"
#include "kernels/kernels.hpp"
#include "runtime/backend.hpp"

namespace minimal {
namespace {

CudaAddress address_of(const void* data, uint64_t offset) { return reinterpret_cast<CudaAddress>(data) + offset; }

void device_count(Backend& backend, int32_t* count) { *count = backend.count(); }

void properties(Backend& backend, int32_t ordinal, bp_device_properties* out) {
  const int number = backend.device(ordinal).number;
  size_t bytes = 0;
  check(driver().cuDeviceGetName(out->name, sizeof(out->name), number), "cuDeviceGetName");
  check(driver().cuDeviceTotalMem_v2(&bytes, number), "cuDeviceTotalMem");
  out->total_memory = bytes;
  out->dl_device_type = kDLCUDA;
}

void allocate(Backend& backend, int32_t ordinal, uint64_t size, void** data) {
  const Current current(backend.device(ordinal));
  CudaAddress made = 0;
  check(driver().cuMemAlloc_v2(&made, size), "cuMemAlloc");
  *data = reinterpret_cast<void*>(made);
}

void deallocate(Backend& backend, int32_t ordinal, void* data, uint64_t) {
  const Current current(backend.device(ordinal));
  check(driver().cuMemFree_v2(address_of(data, 0)), "cuMemFree");
}

// By way of page-locked memory: the driver reads a source of another kind before it returns, and so waits.
void copy_from_host(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                    uint64_t dst_offset, const void* src, uint64_t size) {
  const Current current(backend.device(ordinal));
  const Pinned staged = stream_of(stream).take_pinned(size, ticket);
  std::memcpy(staged.host, src, size);
  check(driver().cuMemcpyHtoDAsync_v2(address_of(dst, dst_offset), staged.host, size, stream_of(stream).handle()),
        "cuMemcpyHtoDAsync");
}

void copy_to_host(Backend& backend, int32_t ordinal, bp_stream* stream, void* dst, void* src, uint64_t src_offset,
                  uint64_t size) {
  const Current current(backend.device(ordinal));
  check(driver().cuMemcpyDtoHAsync_v2(dst, address_of(src, src_offset), size, stream_of(stream).handle()),
        "cuMemcpyDtoHAsync");
  stream_of(stream).finish();
}

void copy(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, uint64_t dst_offset,
          void* src, uint64_t src_offset, uint64_t size) {
  const Current current(backend.device(ordinal));
  const CudaHandle on = stream_of(stream).handle();
  const CudaAddress to = address_of(dst, dst_offset), from = address_of(src, src_offset);
  if (std::max(to, from) - std::min(to, from) >= size)
    return check(driver().cuMemcpyDtoDAsync_v2(to, from, size, on), "cuMemcpyDtoDAsync");
  const Pinned between = stream_of(stream).take_pinned(size, ticket);  // the driver copies no overlapping regions
  check(driver().cuMemcpyDtoDAsync_v2(between.device, from, size, on), "cuMemcpyDtoDAsync");
  check(driver().cuMemcpyDtoDAsync_v2(to, between.device, size, on), "cuMemcpyDtoDAsync");
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
  backplane::plugin::StreamSlots<Backend, Stream, Current>::fill(def);
  registrar.backend(def);
}

}  // namespace minimal
