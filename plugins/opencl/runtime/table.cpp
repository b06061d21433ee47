// The device table: each slot is a function that takes the backend and may throw. `data` is a cl_mem.
#include <algorithm>
#include <cstdio>

#include "backplane/plugin/stream_slots.hpp"
#include "runtime/backend.hpp"

namespace opencl {
namespace {

void device_count(Backend& backend, int32_t* count) { *count = backend.driver.count(); }

void properties(Backend& backend, int32_t ordinal, bp_device_properties* out) {
  const Device& device = backend.driver.device(ordinal);
  std::snprintf(out->name, sizeof(out->name), "%s", device.name().c_str());
  out->total_memory = device.memory();
  out->largest_block = device.largest_block();
  out->dl_device_type = kDLOpenCL;
  out->lacks = device.has_float64() ? 0 : BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX128);
}

void allocate(Backend& backend, int32_t ordinal, uint64_t size, void** data) {
  const Device& device = backend.driver.device(ordinal);
  BP_CHECK(size <= device.largest_block(), MEMORY, "opencl: ", size, " bytes asked for; a block has at most ",
           device.largest_block());
  cl_int status = CL_SUCCESS;
  *data = clCreateBuffer(device.context(), CL_MEM_READ_WRITE, size, nullptr, &status);
  check(status, "clCreateBuffer");
}

void deallocate(Backend&, int32_t, void* data, uint64_t) {
  check(clReleaseMemObject(memory_of(data)), "clReleaseMemObject");
}

// The driver reads the source into a buffer of its own at once; the copy from there waits for its turn.
void copy_from_host(Backend&, int32_t, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset, const void* src,
                    uint64_t size) {
  const Stream& on = stream_of(stream);
  cl_int status = CL_SUCCESS;
  const cl_mem staged = clCreateBuffer(on.device().context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, size,
                                       const_cast<void*>(src), &status);
  check(status, "clCreateBuffer");
  status = clEnqueueCopyBuffer(on.queue(), staged, memory_of(dst), 0, dst_offset, size, 0, nullptr, nullptr);
  clReleaseMemObject(staged);  // once the copy is done
  check(status, "clEnqueueCopyBuffer");
}

void copy_to_host(Backend&, int32_t, bp_stream* stream, void* dst, void* src, uint64_t src_offset, uint64_t size) {
  check(clEnqueueReadBuffer(stream_of(stream).queue(), memory_of(src), CL_TRUE, src_offset, size, dst, 0, nullptr,
                            nullptr),
        "clEnqueueReadBuffer");
}

// The driver copies between buffers, and within one where the two parts are apart.
void copy(Backend&, int32_t, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset, void* src,
          uint64_t src_offset, uint64_t size) {
  const Stream& on = stream_of(stream);
  const auto enqueue = [&](cl_mem from, cl_mem to, uint64_t from_offset, uint64_t to_offset) {
    check(clEnqueueCopyBuffer(on.queue(), from, to, from_offset, to_offset, size, 0, nullptr, nullptr),
          "clEnqueueCopyBuffer");
  };
  const uint64_t apart = std::max(src_offset, dst_offset) - std::min(src_offset, dst_offset);
  if (dst != src || apart >= size) return enqueue(memory_of(src), memory_of(dst), src_offset, dst_offset);
  cl_int status = CL_SUCCESS;
  const cl_mem between = clCreateBuffer(on.device().context(), CL_MEM_READ_WRITE, size, nullptr, &status);
  check(status, "clCreateBuffer");
  enqueue(memory_of(src), between, src_offset, 0);
  enqueue(between, memory_of(dst), 0, dst_offset);
  clReleaseMemObject(between);
}

void native(Backend& backend, int32_t ordinal, bp_stream* stream, const char* kind, void** handle) {
  const std::string wanted = kind;
  if (wanted == "cl_context")
    *handle = backend.driver.device(ordinal).context();
  else if (wanted == "cl_device_id")
    *handle = backend.driver.device(ordinal).id();
  else if (wanted == "cl_command_queue" && stream != nullptr)
    *handle = stream_of(stream).queue();
  else
    ::backplane::detail::fail(BP_ERROR_VALUE, "opencl: no native \"", wanted,
                              "\"; there are cl_context, cl_device_id and, of a stream, cl_command_queue");
}

}  // namespace

void Backend::register_on(const backplane::plugin::Registrar& registrar) {
  using backplane::plugin::backend_slot;
  host_ = registrar.host();
  bp_backend_def def{};
  def.header = BP_HEADER(bp_backend_def);
  def.name = kName;
  def.flags = 0;  // handles, a queue: nothing that the host may take for granted
  def.context = this;
  def.device_count = backend_slot<device_count>;
  def.properties = backend_slot<properties>;
  def.allocate = backend_slot<allocate>;
  def.deallocate = backend_slot<deallocate>;
  def.copy_from_host = backend_slot<copy_from_host>;
  def.copy_to_host = backend_slot<copy_to_host>;
  def.copy = backend_slot<copy>;
  backplane::plugin::StreamSlots<Backend, Stream>::fill(def);
  def.native = backend_slot<native>;
  registrar.backend(def);
}

}  // namespace opencl
