// Copies that do not begin or end where the device's do (bp_device_properties::copy_granule): widened, and put together
// in memory of the host.
//
// Blocks have whole granules, so that a widened copy stays within its own. Any thread may call; throws Error.
#pragma once

#include "memory/devices/device.hpp"
#include "memory/storage.hpp"

namespace backplane::core {

// Can the device not copy these bytes by themselves?
inline bool splits_granules(const Device& device, uint64_t offset, uint64_t size) {
  const uint64_t granule = device.properties.copy_granule;
  return granule > 1 && ((offset | size) & (granule - 1)) != 0;
}

// As copy_from_host and copy_to_host (copy.hpp), of bytes that split granules.
void copy_part_from_host(Device& device, bp_storage* dst, uint64_t dst_offset, const void* src, uint64_t size);
void copy_part_to_host(Device& device, bp_storage* src, uint64_t src_offset, void* dst, uint64_t size);
// Within a device, over the host.
void copy_parts_within(Device& device, bp_storage* dst, uint64_t dst_offset, bp_storage* src, uint64_t src_offset,
                       uint64_t size);

}  // namespace backplane::core
