// Moving bytes: between the host and a device, within a device, between devices.
//
// Each call is ordered with the work on the storages that it names. Throws Error; also for memory of before a reset.
#pragma once

#include "memory/devices/stream.hpp"

namespace backplane::core {

// The source has been read when it returns.
void copy_from_host(Device& device, bp_storage* dst, uint64_t dst_offset, const void* src, uint64_t size);
// The bytes are there when it returns.
void copy_to_host(Device& device, bp_storage* src, uint64_t src_offset, void* dst, uint64_t size);
// Bytes from one storage of the device to another, in the order of the current stream.
void copy_within(Device& device, bp_storage* dst, uint64_t dst_offset, bp_storage* src, uint64_t src_offset,
                 uint64_t size);

// Returns when the last write to the storage has ended. Throws if that write failed.
void wait_until_written(const bp_storage& storage);

// Between the device and memory of memory/pinned.hpp of its backend, in the order of the current stream: the host's
// side is touched when the stream comes to it, and kept until then. Each gives the ticket of the copy, on that stream.
uint64_t copy_from_pinned(Device& device, bp_storage* dst, uint64_t dst_offset, bp_storage* src, uint64_t src_offset,
                          uint64_t size);
uint64_t copy_to_pinned(Device& device, bp_storage* dst, uint64_t dst_offset, bp_storage* src, uint64_t src_offset,
                        uint64_t size);

}  // namespace backplane::core
