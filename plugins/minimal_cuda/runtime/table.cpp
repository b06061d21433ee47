// The device table: each slot is a function that takes the backend and may throw. `data` is an address on the device.
#include <algorithm>
#include <cstdio>
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

void stream_create(Backend& backend, int32_t ordinal, bp_stream** stream) {
  Device& device = backend.device(ordinal);
  const Current current(device);
  *stream = reinterpret_cast<bp_stream*>(new Stream(device));
}

void BP_CALL stream_destroy(void* context, int32_t, bp_stream* stream) {
  // The status is dropped: the slot gives none, and only a lost device refuses to be made current.
  (void)backplane::plugin::guard(static_cast<Backend*>(context)->host(), [&] {
    const Current current(stream_of(stream).device());
    delete &stream_of(stream);
  });
}

void flush(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  const Current current(backend.device(ordinal));
  stream_of(stream).flush(ticket);
}

void completed(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t* ticket) {
  const Current current(backend.device(ordinal));
  *ticket = stream_of(stream).completed();
}

bp_status wait(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  const Current current(backend.device(ordinal));
  const bp_status status = stream_of(stream).wait(ticket);
  if (status != BP_OK) backend.host()->set_error(status, "minimal: recorded work met bad data; see deferred_error");
  return status;
}

void stream_wait(Backend& backend, int32_t ordinal, bp_stream* stream, bp_stream* other, uint64_t ticket) {
  const Current current(backend.device(ordinal));
  stream_of(stream).wait_for(stream_of(other), ticket);
}

// Of data alone: what else fails CUDA reports at every call from then on.
void deferred_error(Backend& backend, int32_t ordinal, bp_stream* stream, bp_deferred_error* out) {
  const Current current(backend.device(ordinal));
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
  def.flags = BP_BACKEND_ADDRESSABLE | BP_BACKEND_SUBALLOCATABLE;
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
  registrar.backend(def);
}

}  // namespace minimal
