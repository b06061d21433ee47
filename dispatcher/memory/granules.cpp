#include "memory/granules.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "memory/copy.hpp"

namespace backplane::core {
namespace {

bool same_write(const StorageUse& a, const StorageUse& b) { return a.stream == b.stream && a.ticket == b.ticket; }

// The bytes [first, first + size) of one granule, and the others as they are. Where another thread writes the block
// between the read and the write, it begins again.
void write_in_granule(Device& device, bp_storage* dst, uint64_t granule, uint64_t first, const void* src,
                      uint64_t size) {
  std::vector<char> bytes(device.properties.copy_granule);
  for (;;) {
    StorageUse before;
    {
      std::lock_guard lock(device.lock);
      before = dst->uses.write();
    }
    copy_to_host(device, dst, granule, bytes.data(), bytes.size());
    std::memcpy(bytes.data() + (first - granule), src, size);
    std::lock_guard lock(device.lock);
    if (!same_write(before, dst->uses.write())) continue;
    return copy_from_host(device, dst, granule, bytes.data(), bytes.size());
  }
}

}  // namespace

void copy_part_from_host(Device& device, bp_storage* dst, uint64_t dst_offset, const void* src, uint64_t size) {
  const uint64_t step = device.properties.copy_granule, end = dst_offset + size;
  const auto* bytes = static_cast<const char*>(src);
  uint64_t at = dst_offset;
  const auto put = [&](uint64_t until) {
    const uint64_t granule = at & ~(step - 1);
    write_in_granule(device, dst, granule, at, bytes + (at - dst_offset), until - at);
    at = until;
  };
  if (at & (step - 1)) put(std::min(end, (at & ~(step - 1)) + step));
  const uint64_t whole = (end - at) & ~(step - 1);
  if (whole) copy_from_host(device, dst, at, bytes + (at - dst_offset), whole);
  at += whole;
  if (at < end) put(end);
}

void copy_part_to_host(Device& device, bp_storage* src, uint64_t src_offset, void* dst, uint64_t size) {
  const uint64_t step = device.properties.copy_granule, begin = src_offset & ~(step - 1);
  const uint64_t end = (src_offset + size + step - 1) & ~(step - 1);
  std::vector<char> bytes(end - begin);
  copy_to_host(device, src, begin, bytes.data(), bytes.size());
  std::memcpy(dst, bytes.data() + (src_offset - begin), size);
}

void copy_parts_within(Device& device, bp_storage* dst, uint64_t dst_offset, bp_storage* src, uint64_t src_offset,
                       uint64_t size) {
  std::vector<char> bytes(size);
  copy_to_host(device, src, src_offset, bytes.data(), size);
  copy_from_host(device, dst, dst_offset, bytes.data(), size);
}

}  // namespace backplane::core
