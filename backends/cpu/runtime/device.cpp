// Memory, copies and properties. It has no streams: the stream slots stay NULL, as BP_BACKEND_SYNCHRONOUS says.
//
// The table's context is the host's, for error messages. Any thread may call.
#include "runtime/device.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "runtime/allocator.hpp"

namespace backplane::cpu {
namespace {

const bp_host* host_of(void* context) { return static_cast<const bp_host*>(context); }

bp_status BP_CALL device_count(void*, int32_t* count) {
  *count = 1;
  return BP_OK;
}

bp_status BP_CALL properties(void*, int32_t, bp_device_properties* out) {
  const uint32_t size = out->header.struct_size;
  bp_device_properties answer{};
  answer.header = BP_HEADER(bp_device_properties);
  std::snprintf(answer.name, sizeof(answer.name), "host processor");
  answer.total_memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  answer.alignment = 1;
  answer.dl_device_type = kDLCPU;
  // A caller that states no size knows the struct of this minor.
  std::memcpy(static_cast<void*>(out), &answer, size != 0 && size < sizeof(answer) ? size : sizeof(answer));
  return BP_OK;
}

bp_status BP_CALL allocate_block(void* context, int32_t, uint64_t size, void** data) {
  *data = allocate(size);
  if (*data != nullptr) return BP_OK;
  const bool limited = memory_stats().limit != UINT64_MAX;
  host_of(context)->set_error(BP_ERROR_MEMORY,
                              limited ? "the limit is reached, or the system has no more" : "the system has no more");
  return BP_ERROR_MEMORY;
}

bp_status BP_CALL deallocate_block(void*, int32_t, void* data, uint64_t size) {
  deallocate(data, size);
  return BP_OK;
}

bp_status BP_CALL copy_from_host(void*, int32_t, bp_stream*, uint64_t, void* dst, uint64_t dst_offset, const void* src,
                                 uint64_t size) {
  std::memcpy(static_cast<char*>(dst) + dst_offset, src, size);
  return BP_OK;
}
bp_status BP_CALL copy_to_host(void*, int32_t, bp_stream*, void* dst, void* src, uint64_t src_offset, uint64_t size) {
  std::memcpy(dst, static_cast<char*>(src) + src_offset, size);
  return BP_OK;
}
bp_status BP_CALL copy(void*, int32_t, bp_stream*, uint64_t, void* dst, uint64_t dst_offset, void* src,
                       uint64_t src_offset, uint64_t size) {
  std::memmove(static_cast<char*>(dst) + dst_offset, static_cast<char*>(src) + src_offset, size);
  return BP_OK;
}

bp_status BP_CALL stats(void*, int32_t, bp_memory_stats* out) {
  const MemoryStats now = memory_stats();
  out->in_use = now.in_use;
  out->peak = now.peak;
  out->reserved = now.reserved;
  if (!BP_HAS(out, bp_memory_stats, limit)) return BP_OK;  // a host of before these members
  out->allocations = now.allocations;
  out->cache_hits = now.cache_hits;
  out->limit = now.limit;
  return BP_OK;
}

bp_status BP_CALL reset_peak_memory_stats(void*, int32_t) {
  reset_peak();
  return BP_OK;
}

bp_status BP_CALL empty_cache(void*, int32_t) {
  release_kept();
  return BP_OK;
}

bp_status BP_CALL set_memory_limit(void*, int32_t, uint64_t limit) {
  set_limit(limit);
  return BP_OK;
}

const bp_extension_compiler* (*compiler_of)(uint32_t version) = nullptr;

const void* BP_CALL extension(void*, const char* name, uint32_t version) {
  return std::string_view(name) == BP_EXTENSION_COMPILER ? compiler_of(version) : nullptr;
}

bp_status BP_CALL after_fork(void*) {
  reset_after_fork();
  return BP_OK;
}

}  // namespace

bp_backend_def backend_def(const bp_host* host, const bp_extension_compiler* (*compiler)(uint32_t version)) {
  compiler_of = compiler;
  bp_backend_def def{};
  def.header = BP_HEADER(bp_backend_def);
  def.name = "cpu";
  def.flags = BP_BACKEND_ADDRESSABLE | BP_BACKEND_SUBALLOCATABLE | BP_BACKEND_HOST_MEMORY | BP_BACKEND_SYNCHRONOUS |
              BP_BACKEND_HOST_DEVICE;
  def.context = const_cast<bp_host*>(host);
  def.device_count = device_count;
  def.properties = properties;
  def.allocate = allocate_block;
  def.deallocate = deallocate_block;
  def.copy_from_host = copy_from_host;
  def.copy_to_host = copy_to_host;
  def.copy = copy;
  def.memory_stats = stats;
  def.after_fork = after_fork;
  def.reset_peak_memory_stats = reset_peak_memory_stats;
  def.empty_cache = empty_cache;
  def.set_memory_limit = set_memory_limit;
  def.extension = extension;
  return def;
}

bp_status BP_CALL stop_device(void*) {
  release_kept();
  return BP_OK;
}

}  // namespace backplane::cpu
