// The extensions about time, about what a device is and about its kinds of memory, and the list of all; see
// extensions.hpp.
#include "extensions.hpp"

#include <iterator>
#include <string_view>

#include "backplane/abi/device_extensions.h"
#include "backplane/plugin/backend.hpp"
#include "fuse/compiler.hpp"
#include "runtime/backend.hpp"

namespace backplane::vulkan {
namespace {

using plugin::backend_slot;

// ---- time

Stamp* as_stamp(bp_time_stamp* stamp) { return reinterpret_cast<Stamp*>(stamp); }

void stamp(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, bp_time_stamp** out) {
  *out = reinterpret_cast<bp_time_stamp*>(backend.device(ordinal).clock().stamp(as_stream(stream)).release());
}

void read(Backend& backend, int32_t ordinal, bp_time_stamp* stamp, uint64_t* nanoseconds) {
  *nanoseconds = backend.device(ordinal).clock().read(*as_stamp(stamp));
}

void BP_CALL drop(void* context, int32_t ordinal, bp_time_stamp* stamp) {
  Backend& backend = *static_cast<Backend*>(context);
  std::unique_ptr<Stamp> taken(as_stamp(stamp));
  // The status is dropped: the slot gives none, and the device was there when the stamp was made.
  (void)plugin::guard(backend.host(), [&] { backend.device(ordinal).clock().drop(std::move(taken)); });
}

const bp_extension_time kTime{BP_HEADER(bp_extension_time), backend_slot<stamp>, backend_slot<read>, drop};

// ---- features

void feature(Backend& backend, int32_t ordinal, uint32_t index, const char** name) {
  *name = feature_of(backend.facts(ordinal), index);
}

void property(Backend& backend, int32_t ordinal, uint32_t index, const char** name, bp_value* value) {
  *name = property_of(backend.facts(ordinal), index, *value);
}

const bp_extension_features kFeatures{BP_HEADER(bp_extension_features), backend_slot<feature>, backend_slot<property>};

// ---- kinds of memory: the device's own, and what the host reads and writes without a copy of the device's

constexpr const char* kKinds[] = {"device", "host_visible"};

void kind(Backend&, int32_t, uint32_t index, const char** name) {
  *name = index < std::size(kKinds) ? kKinds[index] : nullptr;
}

// Vulkan aligns no address by itself, so the beginning is found inside of a greater block.
void allocate(Backend& backend, int32_t ordinal, const char* kind, uint64_t size, uint64_t alignment, void** data) {
  BP_CHECK(size <= UINT64_MAX - alignment, MEMORY, "vulkan: ", size, " bytes do not fit the address space");
  const uint64_t block = backend.device(ordinal).allocate(size + alignment - 1, std::string_view(kind) == kKinds[1]);
  *data = reinterpret_cast<void*>((block + alignment - 1) / alignment * alignment);
}

void deallocate(Backend& backend, int32_t ordinal, const char*, void* data, uint64_t) {
  backend.device(ordinal).deallocate(reinterpret_cast<uint64_t>(data));
}

const bp_extension_memory kMemory{BP_HEADER(bp_extension_memory),
                                  backend_slot<kind>,
                                  backend_slot<allocate>,
                                  backend_slot<deallocate>,
                                  nullptr,
                                  nullptr};

}  // namespace

const void* BP_CALL find_extension(void*, const char* name, uint32_t version) {
  const std::string_view wanted = name;
  if (wanted == BP_EXTENSION_COMPILER) return compiler(version);
  if (version > 1) return nullptr;
  if (wanted == BP_EXTENSION_TIME) return &kTime;
  if (wanted == BP_EXTENSION_FEATURES) return &kFeatures;
  return wanted == BP_EXTENSION_MEMORY ? &kMemory : nullptr;
}

}  // namespace backplane::vulkan
