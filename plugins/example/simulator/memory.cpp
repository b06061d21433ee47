// First-fit allocation in a sparse memory file; see memory.hpp for the two mappings.
#include "memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "backplane/error.hpp"

namespace sim {
namespace {

constexpr uint64_t kGranule = 64;               // every block starts on a cache line
constexpr uint64_t kMaxAlignment = 1ull << 21;  // of a block
constexpr uint64_t kReturnPages = 1ull << 20;   // blocks from this size on give their pages back to the system

// At a multiple of kMaxAlignment, so that an address has the alignment of its offset.
char* map_file(int file, uint64_t size, int protection) {
  const uint64_t room = size + kMaxAlignment;
  void* reserved = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  BP_CHECK(reserved != MAP_FAILED, DEVICE, "sim: mmap of ", room, " bytes: ", std::strerror(errno));
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(reserved);
  const uintptr_t start = (begin + kMaxAlignment - 1) & ~uintptr_t{kMaxAlignment - 1};
  const uintptr_t end = (start + size + page - 1) & ~uintptr_t{page - 1};
  void* view = mmap(reinterpret_cast<void*>(start), size, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0);
  if (view == MAP_FAILED) {
    const int why = errno;
    munmap(reserved, room);
    BP_CHECK(false, DEVICE, "sim: mmap of ", size, " bytes: ", std::strerror(why));
  }
  if (start > begin) munmap(reserved, start - begin);
  if (begin + room > end) munmap(reinterpret_cast<void*>(end), begin + room - end);
  return static_cast<char*>(view);
}

}  // namespace

DeviceMemory::DeviceMemory(Addressing addressing, uint64_t capacity)
    : addressing_(addressing), capacity_(capacity), free_{{0, capacity}} {
  file_ = memfd_create("backplane-sim", MFD_CLOEXEC);
  BP_CHECK(file_ >= 0, DEVICE, "sim: memfd_create: ", std::strerror(errno));
  try {
    BP_CHECK(ftruncate(file_, static_cast<off_t>(capacity)) == 0, DEVICE, "sim: ftruncate to ", capacity,
             " bytes: ", std::strerror(errno));
    device_view_ = map_file(file_, capacity, PROT_READ | PROT_WRITE);
    if (addressing_ == Addressing::kProtected) host_view_ = map_file(file_, capacity, PROT_NONE);
  } catch (...) {
    unmap();
    throw;
  }
}

DeviceMemory::~DeviceMemory() { unmap(); }

void DeviceMemory::unmap() noexcept {
  if (host_view_) munmap(host_view_, capacity_);
  if (device_view_) munmap(device_view_, capacity_);
  close(file_);
}

void* DeviceMemory::allocate(uint64_t size, uint64_t alignment) {
  BP_CHECK(size > 0 && size <= capacity_, MEMORY, "sim: a block of ", size, " bytes does not fit a device of ",
           capacity_, " bytes");
  BP_CHECK(alignment <= kMaxAlignment, VALUE, "sim: found an alignment of ", alignment, " bytes, expected at most ",
           kMaxAlignment);
  const uint64_t rounded = (size + kGranule - 1) / kGranule * kGranule;
  std::lock_guard lock(mutex_);
  const uint64_t offset = take_range(rounded, std::max(alignment, kGranule));
  void* name = name_of(offset);
  blocks_.emplace(reinterpret_cast<uintptr_t>(name), Block{offset, rounded});
  stats_.in_use += rounded;
  stats_.peak = std::max(stats_.peak, stats_.in_use);
  return name;
}

void DeviceMemory::release(void* block) {
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(block));
  BP_CHECK(found != blocks_.end(), VALUE, "sim: deallocate: ", block, " is not a block of this device");
  const Block freed = found->second;
  blocks_.erase(found);
  if (freed.size >= kReturnPages)  // advice only: a failure costs memory, never correctness
    (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(freed.offset),
                    static_cast<off_t>(freed.size));
  give_range(freed.offset, freed.size);
  stats_.in_use -= freed.size;
}

void DeviceMemory::clear() {
  std::lock_guard lock(mutex_);
  (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(capacity_));
  blocks_.clear();
  free_ = {{0, capacity_}};
  stats_.in_use = 0;
}

char* DeviceMemory::resolve(const void* block, uint64_t byte_offset, uint64_t size) const {
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(block));
  BP_CHECK(found != blocks_.end(), VALUE, "sim: ", block, " is not a block of this device");
  const Block& held = found->second;
  BP_CHECK(byte_offset <= held.size && size <= held.size - byte_offset, VALUE, "sim: bytes ", byte_offset, " to ",
           byte_offset + size, " lie outside a block of ", held.size, " bytes");
  return device_view_ + held.offset + byte_offset;
}

MemoryStats DeviceMemory::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

uint64_t DeviceMemory::take_range(uint64_t size, uint64_t alignment) {
  const auto start_in = [&](uint64_t offset) { return (offset + alignment - 1) & ~(alignment - 1); };
  const auto fit = std::find_if(free_.begin(), free_.end(), [&](const auto& range) {
    const uint64_t skipped = start_in(range.first) - range.first;
    return range.second >= skipped && range.second - skipped >= size;
  });
  BP_CHECK(fit != free_.end(), MEMORY, "sim: out of memory: ", size, " bytes wanted, ", stats_.in_use, " of ",
           capacity_, " in use, no free range is large enough");
  const auto [offset, available] = *fit;
  const uint64_t start = start_in(offset), skipped = start - offset;
  free_.erase(fit);
  if (skipped > 0) free_.emplace(offset, skipped);
  if (available > skipped + size) free_.emplace(start + size, available - skipped - size);
  return start;
}

void DeviceMemory::give_range(uint64_t offset, uint64_t size) {
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += size;
      return;
    }
  }
  free_.emplace(offset, size);
}

void* DeviceMemory::name_of(uint64_t offset) {
  if (addressing_ == Addressing::kProtected) return host_view_ + offset;
  return reinterpret_cast<void*>(next_handle_++);
}

}  // namespace sim
