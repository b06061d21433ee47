// The backend's table: each slot is a function that may throw, behind an edge that turns exceptions into statuses.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backplane/plugin/backend.hpp"
#include "extensions.hpp"
#include "runtime/backend.hpp"

namespace backplane::cuda {
namespace {

void device_count(Backend& backend, int32_t* count) {
  *count = 0;
  std::string reason;
  if (const Driver* driver = find_driver(&reason)) {
    int found = 0;
    check(driver->cuDeviceGetCount(&found), "cuDeviceGetCount");
    *count = found;
    if (found == 0) reason = "no device: cuDeviceGetCount gives none";
  }
  if (*count == 0) backend.host()->set_error(BP_ERROR_DEVICE, reason.c_str());
}

void properties(Backend& backend, int32_t ordinal, bp_device_properties* out) {
  const Driver& driver = the_driver();
  const driver::Device device = backend.device(ordinal).handle();
  size_t bytes = 0;
  check(driver.cuDeviceGetName(out->name, sizeof(out->name), device), "cuDeviceGetName");
  check(driver.cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem");
  out->total_memory = bytes;
  out->alignment = 0;
  out->lacks = 0;
  out->dl_device_type = kDLCUDA;
}

void allocate(Backend& backend, int32_t ordinal, uint64_t size, void** data) {
  Device& device = backend.device(ordinal);
  const DeviceScope scope(device);
  *data = reinterpret_cast<void*>(device.allocate(size));
}

void deallocate(Backend& backend, int32_t ordinal, void* data, uint64_t size) {
  Device& device = backend.device(ordinal);
  const DeviceScope scope(device);
  device.deallocate(at(data, 0), size);
}

// Waits for the copy: of page-locked memory the driver returns before it has read the source.
void copy_from_host(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset,
                    const void* src, uint64_t size) {
  const DeviceScope scope(backend.device(ordinal));
  as_stream(stream).copy_from_host(at(dst, dst_offset), src, size);
  if (!as_stream(stream).is_capturing()) as_stream(stream).synchronize();
}

void copy_to_host(Backend& backend, int32_t ordinal, bp_stream* stream, void* dst, void* src, uint64_t src_offset,
                  uint64_t size) {
  const DeviceScope scope(backend.device(ordinal));
  BP_CHECK(!as_stream(stream).is_capturing(), DEVICE, "cuda: a stream that is being captured runs nothing");
  check(the_driver().cuMemcpyDtoHAsync_v2(dst, at(src, src_offset), size, as_stream(stream).handle()),
        "cuMemcpyDtoHAsync");
  as_stream(stream).synchronize();
}

void copy(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset, void* src,
          uint64_t src_offset, uint64_t size) {
  const DeviceScope scope(backend.device(ordinal));
  check(the_driver().cuMemcpyDtoDAsync_v2(at(dst, dst_offset), at(src, src_offset), size, as_stream(stream).handle()),
        "cuMemcpyDtoDAsync");
}

void stream_create(Backend& backend, int32_t ordinal, bp_stream** stream) {
  Device& device = backend.device(ordinal);
  const DeviceScope scope(device);
  *stream = as_handle(device.streams().add(std::make_unique<Stream>(the_driver(), device.aborted())));
}

void BP_CALL stream_destroy(void* context, int32_t ordinal, bp_stream* stream) {
  Backend& backend = *static_cast<Backend*>(context);
  // The status is dropped: the slot gives none, and only a device that is lost or given up refuses to be made current.
  // Then the stream lives until the reset.
  (void)plugin::guard(backend.host(), [&] {
    Device& device = backend.device(ordinal);
    const DeviceScope scope(device);
    device.destroy(as_stream(stream));
  });
}

void flush(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  const DeviceScope scope(backend.device(ordinal));
  as_stream(stream).flush(ticket);
}

void completed(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t* ticket) {
  const DeviceScope scope(backend.device(ordinal));
  *ticket = as_stream(stream).completed();
}

bp_status wait_for(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, uint64_t timeout,
                   int32_t* done) {
  const DeviceScope scope(backend.device(ordinal));
  bool complete = false;
  const bp_status status = as_stream(stream).wait_for(ticket, timeout, complete);
  *done = complete;
  if (status != BP_OK) backend.host()->set_error(status, "cuda: recorded work failed; see deferred_error");
  return status;
}

bp_status wait(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  int32_t done = 0;
  return wait_for(backend, ordinal, stream, ticket, kNoTimeout, &done);
}

void abort(Backend& backend, int32_t ordinal) { backend.device(ordinal).aborted().set(); }

void stream_wait(Backend& backend, int32_t ordinal, bp_stream* stream, bp_stream* other, uint64_t ticket) {
  const DeviceScope scope(backend.device(ordinal));
  as_stream(stream).wait_behind(as_stream(other), ticket);
}

// Of data alone. CUDA does not say which work has failed otherwise, and gives the error at every call from then on: the
// failing wait reports it.
// The host may know from another stream that this one's work has ended, so check it.
void deferred_error(Backend& backend, int32_t ordinal, bp_stream* stream, bp_deferred_error* out) {
  auto error = as_stream(stream).take_error();
  if (!error) {
    const DeviceScope scope(backend.device(ordinal));
    (void)as_stream(stream).completed();
    error = as_stream(stream).take_error();
  }
  out->ticket = error ? error->ticket : 0;
  out->code = error ? BP_ERROR_DATA : BP_OK;
  std::snprintf(out->message, sizeof(out->message), "%s", error ? error->message.c_str() : "");
}

void memory_stats(Backend& backend, int32_t ordinal, bp_memory_stats* out) {
  Device& device = backend.device(ordinal);
  std::lock_guard lock(device.mutex);
  const bp_header header = out->header;
  *out = device.use;
  out->header = header;
}

void reset_peak(Backend& backend, int32_t ordinal) {
  Device& device = backend.device(ordinal);
  std::lock_guard lock(device.mutex);
  device.use.peak = device.use.in_use;
}

void set_limit(Backend& backend, int32_t ordinal, uint64_t limit) {
  Device& device = backend.device(ordinal);
  std::lock_guard lock(device.mutex);
  device.use.limit = limit;
}

// The handles that another plugin's kernel needs. The runtime's and the driver's stream are the same object.
void native(Backend& backend, int32_t ordinal, bp_stream* stream, const char* kind, void** handle) {
  const std::string_view wanted = kind;
  if (wanted == "CUcontext") {
    *handle = backend.device(ordinal).context();
    return;
  }
  BP_CHECK((wanted == "CUstream" || wanted == "cudaStream_t") && stream, VALUE, "cuda: no native handle of kind \"",
           kind, "\"; expected CUcontext, or for a stream CUstream or cudaStream_t");
  *handle = as_stream(stream).handle();
}

}  // namespace

bp_backend_def Backend::table() {
  bp_backend_def def{};
  def.header = BP_HEADER(bp_backend_def);
  def.name = "cuda";
  // Tools that watch memory see more where each tensor has a block of the driver's.
  const bool exact = std::getenv("BACKPLANE_CUDA_EXACT_MEMORY") != nullptr;
  def.flags = BP_BACKEND_ADDRESSABLE | (exact ? 0u : uint32_t{BP_BACKEND_SUBALLOCATABLE});
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
  def.reset_peak_memory_stats = plugin::backend_slot<reset_peak>;
  def.set_memory_limit = plugin::backend_slot<set_limit>;
  def.extension = find_extension;
  def.abort = plugin::backend_slot<abort>;
  def.wait_for = plugin::backend_slot<wait_for>;
  return def;
}

}  // namespace backplane::cuda
