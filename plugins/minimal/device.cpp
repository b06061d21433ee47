// The device table: each slot is a function that takes the backend and may throw.
#include "device.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backplane/plugin/backend.hpp"

namespace minimal {
namespace {

constexpr uint64_t kMemory = 4ull << 30;  // bytes of the device
constexpr uint64_t kGranule = 64;         // every block begins on a cache line, and has a multiple of it

uint64_t rounded(uint64_t size) { return (size + kGranule - 1) / kGranule * kGranule; }

void* at(void* data, uint64_t offset) { return static_cast<char*>(data) + offset; }

// How many devices there are. A driver is started here, when the backend is first named, and not before.
void device_count(Backend&, int32_t* count) { *count = 1; }

void properties(Backend&, int32_t, bp_device_properties* out) {
  std::snprintf(out->name, sizeof(out->name), "minimal device");
  out->total_memory = kMemory;
  out->dl_device_type = kDLExtDev;
  out->lacks = 0;  // dtypes in which the device cannot compute: BP_DTYPE_BIT(BP_FLOAT64) | ...
}

void allocate(Backend& backend, int32_t, uint64_t size, void** data) {
  BP_CHECK(size <= kMemory, MEMORY, "minimal: ", size, " bytes asked for; the device has ", kMemory);
  const uint64_t bytes = rounded(size), in_use = backend.in_use.fetch_add(bytes);
  *data = in_use + bytes <= kMemory ? std::aligned_alloc(kGranule, bytes) : nullptr;
  if (*data == nullptr) backend.in_use -= bytes;
  BP_CHECK(*data != nullptr, MEMORY, "minimal: ", size, " bytes asked for; ", in_use, " of ", kMemory, " are in use");
}

void deallocate(Backend& backend, int32_t, void* data, uint64_t size) {
  std::free(data);
  backend.in_use -= rounded(size);
}

// A copy has no stream and no ticket here: all work is done when a call returns (BP_BACKEND_SYNCHRONOUS).
void copy_from_host(Backend&, int32_t, bp_stream*, uint64_t, void* dst, uint64_t dst_offset, const void* src,
                    uint64_t size) {
  std::memcpy(at(dst, dst_offset), src, size);
}

void copy_to_host(Backend&, int32_t, bp_stream*, void* dst, void* src, uint64_t src_offset, uint64_t size) {
  std::memcpy(dst, at(src, src_offset), size);
}

void copy(Backend&, int32_t, bp_stream*, uint64_t, void* dst, uint64_t dst_offset, void* src, uint64_t src_offset,
          uint64_t size) {
  std::memmove(at(dst, dst_offset), at(src, src_offset), size);
}

}  // namespace

void Backend::register_on(const backplane::plugin::Registrar& registrar, const char* name) {
  using backplane::plugin::backend_slot;
  host_ = registrar.host();
  bp_backend_def def{};
  def.header = BP_HEADER(bp_backend_def);
  def.name = name;
  def.flags = BP_BACKEND_SYNCHRONOUS | BP_BACKEND_ADDRESSABLE;
  def.context = this;
  def.device_count = backend_slot<device_count>;
  def.properties = backend_slot<properties>;
  def.allocate = backend_slot<allocate>;
  def.deallocate = backend_slot<deallocate>;
  def.copy_from_host = backend_slot<copy_from_host>;
  def.copy_to_host = backend_slot<copy_to_host>;
  def.copy = backend_slot<copy>;
  registrar.backend(def);
}

}  // namespace minimal
