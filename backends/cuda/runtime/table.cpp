// The backend's table: each slot is a function that may throw, behind an edge that turns exceptions into statuses.
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "backplane/plugin/backend.hpp"
#include "runtime/backend.hpp"
#include "runtime/check.hpp"

namespace backplane::cuda {
namespace {

char* at(void* data, uint64_t offset) { return static_cast<char*>(data) + offset; }

void device_count(Backend& backend, int32_t* count) {
  int found = 0;
  const cudaError_t error = cudaGetDeviceCount(&found);
  *count = error == cudaSuccess ? found : 0;
  if (*count > 0) return;
  (void)cudaGetLastError();
  const bool driver = error == cudaSuccess || error == cudaErrorNoDevice;
  const std::string reason = std::string(driver ? "no device" : "no driver") + ": cudaGetDeviceCount: " +
                             cudaGetErrorString(error == cudaSuccess ? cudaErrorNoDevice : error);
  backend.host()->set_error(BP_ERROR_DEVICE, reason.c_str());
}

void properties(Backend&, int32_t ordinal, bp_device_properties* out) {
  cudaDeviceProp found;
  check(cudaGetDeviceProperties(&found, ordinal), "cudaGetDeviceProperties");
  std::snprintf(out->name, sizeof(out->name), "%.*s", static_cast<int>(sizeof(out->name)) - 1, found.name);
  out->total_memory = found.totalGlobalMem;
  out->alignment = 4;  // kernels read words of 32 bits
  out->lacks = BP_MASK_ANY & ~BP_DTYPE_BIT(BP_FLOAT32);
  out->dl_device_type = kDLCUDA;
}

void allocate(Backend& backend, int32_t ordinal, uint64_t size, void** data) {
  *data = backend.take_memory(ordinal, size);
}

void deallocate(Backend& backend, int32_t ordinal, void* data, uint64_t size) {
  backend.give_memory(ordinal, data, size);
}

// Waits for the copy: of page-locked memory cudaMemcpyAsync returns before it has read the source.
void copy_from_host(Backend&, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset,
                    const void* src, uint64_t size) {
  const DeviceScope scope(ordinal);
  const cudaStream_t target = as_stream(stream).handle();
  check(cudaMemcpyAsync(at(dst, dst_offset), src, size, cudaMemcpyHostToDevice, target), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(target), "cudaStreamSynchronize");
}

void copy_to_host(Backend&, int32_t ordinal, bp_stream* stream, void* dst, void* src, uint64_t src_offset,
                  uint64_t size) {
  const DeviceScope scope(ordinal);
  const cudaStream_t source = as_stream(stream).handle();
  check(cudaMemcpyAsync(dst, at(src, src_offset), size, cudaMemcpyDeviceToHost, source), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(source), "cudaStreamSynchronize");
}

void copy(Backend&, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset, void* src,
          uint64_t src_offset, uint64_t size) {
  const DeviceScope scope(ordinal);
  check(cudaMemcpyAsync(at(dst, dst_offset), at(src, src_offset), size, cudaMemcpyDeviceToDevice,
                        as_stream(stream).handle()),
        "cudaMemcpyAsync");
}

void stream_create(Backend&, int32_t ordinal, bp_stream** stream) {
  const DeviceScope scope(ordinal);
  *stream = reinterpret_cast<bp_stream*>(std::make_unique<Stream>().release());
}

void BP_CALL stream_destroy(void* context, int32_t ordinal, bp_stream* stream) {
  // The status is dropped: the slot gives none, and only a lost device refuses to be made current.
  (void)plugin::guard(static_cast<Backend*>(context)->host(), [&] {
    const std::unique_ptr<Stream> ended(&as_stream(stream));
    const DeviceScope scope(ordinal);
  });
}

void flush(Backend&, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  const DeviceScope scope(ordinal);
  as_stream(stream).flush(ticket);
}

void completed(Backend&, int32_t ordinal, bp_stream* stream, uint64_t* ticket) {
  const DeviceScope scope(ordinal);
  *ticket = as_stream(stream).completed();
}

void wait(Backend&, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  const DeviceScope scope(ordinal);
  as_stream(stream).wait(ticket);
}

void stream_wait(Backend&, int32_t ordinal, bp_stream* stream, bp_stream* other, uint64_t ticket) {
  const DeviceScope scope(ordinal);
  as_stream(stream).wait_behind(as_stream(other), ticket);
}

// CUDA does not say which work failed, and gives the error at every call from then on: the failing wait reports it.
void deferred_error(Backend&, int32_t, bp_stream*, bp_deferred_error* out) {
  out->ticket = 0;
  out->code = BP_OK;
  out->message[0] = 0;
}

void memory_stats(Backend& backend, int32_t ordinal, bp_memory_stats* out) {
  const MemoryUse use = backend.memory_use(ordinal);
  out->in_use = use.in_use;
  out->peak = use.peak;
  out->reserved = use.in_use;
}

// The handles that another plugin's kernel needs. The runtime's and the driver's stream are the same object.
void native(Backend&, int32_t ordinal, bp_stream* stream, const char* kind, void** handle) {
  const std::string_view wanted = kind;
  const bool known = wanted == "CUstream" || wanted == "cudaStream_t" || wanted == "cublasHandle_t";
  BP_CHECK(known && stream, VALUE, "cuda: no native handle of kind \"", kind,
           "\"; there are, of a stream, CUstream, cudaStream_t and cublasHandle_t");
  const DeviceScope scope(ordinal);
  if (wanted == "cublasHandle_t")
    *handle = as_stream(stream).blas();
  else
    *handle = as_stream(stream).handle();
}

}  // namespace

bp_backend_def Backend::table() {
  bp_backend_def def{};
  def.header = BP_HEADER(bp_backend_def);
  def.name = "cuda";
  def.flags = BP_BACKEND_ADDRESSABLE;
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

}  // namespace backplane::cuda
