// The extensions that are tables of a few calls of the runtime's each, and the list of all; see extensions.hpp.
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
  *out = reinterpret_cast<bp_time_stamp*>(&backend.device(ordinal).clock().stamp(as_stream(stream)));
}

void read(Backend& backend, int32_t ordinal, bp_time_stamp* stamp, uint64_t* nanoseconds) {
  *nanoseconds = backend.device(ordinal).clock().read(*as_stamp(stamp));
}

void BP_CALL drop(void* context, int32_t ordinal, bp_time_stamp* stamp) {
  Backend& backend = *static_cast<Backend*>(context);
  // The status is dropped: the slot gives none, and the device was there when the stamp was made.
  (void)plugin::guard(backend.host(), [&] { backend.device(ordinal).clock().drop(*as_stamp(stamp)); });
}

const bp_extension_time kTime{BP_HEADER(bp_extension_time), backend_slot<stamp>, backend_slot<read>, drop};

// ---- callbacks

void notify(Backend&, int32_t, bp_stream* stream, uint64_t ticket, bp_completion_fn function, void* argument) {
  as_stream(stream).notify(ticket, function, argument);
}

const bp_extension_callbacks kCallbacks{BP_HEADER(bp_extension_callbacks), backend_slot<notify>};

// ---- pinned

bp_status BP_CALL allocate_pinned(void* context, uint64_t size, void** data) {
  Backend& backend = *static_cast<Backend*>(context);
  return plugin::guard(backend.host(), [&] { *data = backend.allocate_pinned(size); });
}

bp_status BP_CALL release_pinned(void* context, void* data, uint64_t) {
  Backend& backend = *static_cast<Backend*>(context);
  return plugin::guard(backend.host(), [&] { backend.release_pinned(data); });
}

void copy_from_pinned(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset,
                      const void* src, uint64_t size) {
  const Place target = backend.device(ordinal).place(reinterpret_cast<uint64_t>(dst) + dst_offset, size);
  const auto pages = backend.pinned().block_of(src, size);
  as_stream(stream).upload_pinned(target, static_cast<const char*>(src), size, pages);
}

void copy_to_pinned(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, void* src,
                    uint64_t src_offset, uint64_t size) {
  const Place source = backend.device(ordinal).place(reinterpret_cast<uint64_t>(src) + src_offset, size);
  const auto pages = backend.pinned().block_of(dst, size);
  as_stream(stream).download_pinned(static_cast<char*>(dst), source, size, pages);
}

const bp_extension_pinned kPinned{BP_HEADER(bp_extension_pinned), allocate_pinned, release_pinned,
                                  backend_slot<copy_from_pinned>, backend_slot<copy_to_pinned>};

// ---- reset

void reset(Backend& backend, int32_t ordinal) { backend.device(ordinal).reset(); }

const bp_extension_reset kReset{BP_HEADER(bp_extension_reset), backend_slot<reset>};

// ---- features

void feature(Backend& backend, int32_t ordinal, uint32_t index, const char** name) {
  *name = feature_of(backend.facts(ordinal), index);
}

struct Count {
  const char* name;
  std::atomic<uint64_t> Counts::*of;
};
constexpr Count kCounts[] = {{"submissions", &Counts::submissions},
                             {"recorded_commands", &Counts::commands},
                             {"recorded_barriers", &Counts::barriers},
                             {"driver_objects_made", &Counts::objects}};

// Properties of the device, then counts of its work so far. Before its start it has no counts.
void property(Backend& backend, int32_t ordinal, uint32_t index, const char** name, bp_value* value) {
  if ((*name = property_of(backend.facts(ordinal), index, *value))) return;
  const uint32_t at = index - count_of_properties();
  if (at >= std::size(kCounts)) return;
  const Device* device = backend.started(ordinal);
  *name = kCounts[at].name;
  value->tag = BP_TAG_INT;
  value->u.i = device ? static_cast<int64_t>((device->counts.*kCounts[at].of).load()) : 0;
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
  if (wanted == BP_EXTENSION_CALLBACKS) return &kCallbacks;
  if (wanted == BP_EXTENSION_PINNED) return &kPinned;
  if (wanted == BP_EXTENSION_RESET) return &kReset;
  if (wanted == BP_EXTENSION_FEATURES) return &kFeatures;
  return wanted == BP_EXTENSION_MEMORY ? &kMemory : nullptr;
}

}  // namespace backplane::vulkan
