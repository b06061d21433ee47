// The extensions about memory: the host's that devices read and write, other devices', and kinds of a device's own.
#include <cstring>

#include "backplane/plugin/backend.hpp"
#include "extensions.hpp"
#include "runtime/backend.hpp"

namespace backplane::cuda {
namespace {

using plugin::backend_slot;

// ---- pinned

bp_status BP_CALL allocate_pinned(void* context, uint64_t size, void** data) {
  Backend& backend = *static_cast<Backend*>(context);
  return plugin::guard(backend.host(), [&] {
    const DeviceScope scope(backend.device(0));
    *data = backend.pinned().allocate(size);
  });
}

bp_status BP_CALL release_pinned(void* context, void* data, uint64_t) {
  Backend& backend = *static_cast<Backend*>(context);
  return plugin::guard(backend.host(), [&] {
    const DeviceScope scope(backend.device(0));
    backend.pinned().release(data);
  });
}

void copy_from_pinned(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset,
                      const void* src, uint64_t size) {
  backend.pinned().check_inside(src, size);
  const DeviceScope scope(backend.device(ordinal));
  check(the_driver().cuMemcpyHtoDAsync_v2(at(dst, dst_offset), src, size, as_stream(stream).handle()),
        "cuMemcpyHtoDAsync");
}

void copy_to_pinned(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, void* src,
                    uint64_t src_offset, uint64_t size) {
  backend.pinned().check_inside(dst, size);
  const DeviceScope scope(backend.device(ordinal));
  check(the_driver().cuMemcpyDtoHAsync_v2(dst, at(src, src_offset), size, as_stream(stream).handle()),
        "cuMemcpyDtoHAsync");
}

// ---- peers: the backend's other devices that the driver lets read each other's memory

void agrees(Backend& backend, int32_t ordinal, const char* peer, int32_t peer_ordinal, int32_t* yes) {
  *yes = 0;
  if (std::strcmp(peer, "cuda") != 0 || peer_ordinal == ordinal) return;
  int count = 0;
  check(the_driver().cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (peer_ordinal < 0 || peer_ordinal >= count) return;
  driver::Device other = 0;
  check(the_driver().cuDeviceGet(&other, peer_ordinal), "cuDeviceGet");
  check(the_driver().cuDeviceCanAccessPeer(yes, backend.device(ordinal).handle(), other), "cuDeviceCanAccessPeer");
}

void wait_behind_peer(Backend& backend, int32_t ordinal, bp_stream* stream, const char*, int32_t, bp_stream* other,
                      uint64_t ticket) {
  const DeviceScope scope(backend.device(ordinal));
  as_stream(stream).wait_behind(as_stream(other), ticket);
}

void copy_from_peer(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t, void* dst, uint64_t dst_offset,
                    const char*, int32_t peer_ordinal, void* src, uint64_t src_offset, uint64_t size) {
  Device &device = backend.device(ordinal), &peer = backend.device(peer_ordinal);
  const DeviceScope scope(device);
  backend.open_to_peer(ordinal, peer_ordinal);
  check(the_driver().cuMemcpyPeerAsync(at(dst, dst_offset), device.context(), at(src, src_offset), peer.context(), size,
                                       as_stream(stream).handle()),
        "cuMemcpyPeerAsync");
}

// ---- kinds: the device's own memory, and the host's that kernels read over the bus

constexpr const char* kKinds[] = {"device", "host_visible"};
// CUDA C++ Programming Guide, "Device Memory Accesses": of any block that the driver gives.
constexpr uint64_t kOwnAlignment = 256;

bool is_on_device(const char* kind) { return std::strcmp(kind, kKinds[0]) == 0; }

void kind_of(Backend&, int32_t, uint32_t index, const char** name) {
  *name = index < std::size(kKinds) ? kKinds[index] : nullptr;
}

// A greater alignment is found inside of a greater block.
void allocate_kind(Backend& backend, int32_t ordinal, const char* kind, uint64_t size, uint64_t alignment,
                   void** data) {
  Device& device = backend.device(ordinal);
  const DeviceScope scope(device);
  const uint64_t room = alignment > kOwnAlignment ? alignment - kOwnAlignment : 0;
  BP_CHECK(size <= UINT64_MAX - room, MEMORY, "cuda: ", size, " bytes do not fit the address space");
  std::unique_ptr<HostBlock> host;
  if (!is_on_device(kind)) host = std::make_unique<HostBlock>(the_driver(), size + room);
  const driver::Pointer block = host ? host->device() : device.allocate(size + room);
  const driver::Pointer begin = (block + alignment - 1) / alignment * alignment;
  *data = reinterpret_cast<void*>(begin);
  device.blocks().add(*data, {block, size + room, std::move(host)});
}

void release_kind(Backend& backend, int32_t ordinal, const char*, void* data, uint64_t) {
  Device& device = backend.device(ordinal);
  const DeviceScope scope(device);
  const KindBlock block = device.blocks().take(data);
  if (!block.host) device.deallocate(block.begin, block.size);
}

}  // namespace

const bp_extension_pinned kPinned{BP_HEADER(bp_extension_pinned), allocate_pinned, release_pinned,
                                  backend_slot<copy_from_pinned>, backend_slot<copy_to_pinned>};
const bp_extension_peer kPeer{BP_HEADER(bp_extension_peer), backend_slot<agrees>, backend_slot<wait_behind_peer>,
                              backend_slot<copy_from_peer>};
const bp_extension_memory kMemory{BP_HEADER(bp_extension_memory),
                                  backend_slot<kind_of>,
                                  backend_slot<allocate_kind>,
                                  backend_slot<release_kind>,
                                  nullptr,
                                  nullptr};

}  // namespace backplane::cuda
