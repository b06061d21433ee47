#include "host_backend.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace backplane::testing {
namespace {

bp_status device_count(void*, int32_t* count) {
  *count = 2;
  return BP_OK;
}
bp_status allocate(void*, int32_t, uint64_t size, void** data) {
  *data = std::malloc(size);
  return *data ? BP_OK : BP_ERROR_MEMORY;
}
bp_status deallocate(void*, int32_t, void* data, uint64_t) {
  std::free(data);
  return BP_OK;
}
// The core reads and writes host memory itself.
bp_status no_copy_in(void*, int32_t, bp_stream*, uint64_t, void*, uint64_t, const void*, uint64_t) {
  return BP_ERROR_INTERNAL;
}
bp_status no_copy_out(void*, int32_t, bp_stream*, void*, void*, uint64_t, uint64_t) { return BP_ERROR_INTERNAL; }
bp_status copy(void*, int32_t, bp_stream*, uint64_t, void* dst, uint64_t dst_offset, void* src, uint64_t src_offset,
               uint64_t size) {
  std::memmove(static_cast<char*>(dst) + dst_offset, static_cast<char*>(src) + src_offset, size);
  return BP_OK;
}

}  // namespace

bp_backend_def host_backend(const char* name) {
  bp_backend_def backend{};
  backend.header = BP_HEADER(bp_backend_def);
  backend.name = name;
  backend.flags = BP_BACKEND_ADDRESSABLE | BP_BACKEND_HOST_MEMORY | BP_BACKEND_SYNCHRONOUS;
  backend.device_count = device_count;
  backend.properties = [](void*, int32_t, bp_device_properties* out) -> bp_status {
    std::snprintf(out->name, sizeof out->name, "a device of the tests");
    out->total_memory = 1 << 30;
    out->alignment = 1;
    out->dl_device_type = kDLCPU;
    return BP_OK;
  };
  backend.allocate = allocate;
  backend.deallocate = deallocate;
  backend.copy_from_host = no_copy_in;
  backend.copy_to_host = no_copy_out;
  backend.copy = copy;
  return backend;
}

bp_kernel_def kernel_row(const char* op, const char* backend, bp_kernel_fn fn) {
  bp_kernel_def row{};
  row.header = BP_HEADER(bp_kernel_def);
  row.op = op;
  row.backend = backend;
  row.fn = fn;
  row.dtypes = BP_MASK_ANY;
  row.file = __FILE__;
  row.line = __LINE__;
  return row;
}

}  // namespace backplane::testing
