// Size classes: four per power of two from 64 bytes, so that a block is at most a quarter larger than asked for;
// sixteen above 1 MiB, where a quarter would be much. Each class is a stack of free blocks, linked through the blocks
// themselves.
//
// The state is never destroyed: tensors may outlive static destructors.
#include "runtime/allocator.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

namespace backplane::cpu {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeep = false;
#else
constexpr bool kKeep = true;
#endif
constexpr uint64_t kAlignment = 64;
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr int kLargeBits = 20;                           // above 2^20 bytes classes are finer
constexpr int kSmallClasses = 4 * (kLargeBits - 8) + 4;  // those up to 2^20
constexpr int kClasses = kSmallClasses + 16 * (63 - kLargeBits);

struct FreeBlock {
  FreeBlock* next;
};
struct alignas(64) SizeClass {
  std::mutex mutex;
  FreeBlock* free = nullptr;
  uint64_t allocations = 0;
  uint64_t cache_hits = 0;
};

// The limit of cached memory, without memory in use. Beyond it, freed blocks go back to the system at once.
uint64_t most_kept() {
  const auto memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(memory / 8, uint64_t{4} << 30);
}

struct State {
  SizeClass classes[kClasses];
  std::atomic<uint64_t> in_use{0};
  std::atomic<uint64_t> peak{0};
  std::atomic<uint64_t> kept{0};
  std::atomic<uint64_t> limit{UINT64_MAX};
  const uint64_t kept_limit = most_kept();
};
State& state() {
  static State* const instance = new State;
  return *instance;
}

// Sizes up to 256 are multiples of 64; above, 2^k * (4, 5, 6, 7) / 4, and then 2^k * (16, …, 31) / 16.
int class_of(uint64_t size) {
  if (size <= 4 * kAlignment) return static_cast<int>((size - 1) / kAlignment);
  const int top = std::bit_width(size - 1);  // 2^(top-1) < size <= 2^top
  if (top > kLargeBits)
    return kSmallClasses + 16 * (top - kLargeBits - 1) + (static_cast<int>((size - 1) >> (top - 5)) & 15);
  const int quarter = static_cast<int>((size - 1) >> (top - 3)) & 3;
  return 4 * (top - 8) + quarter;
}
uint64_t class_size(int index) {
  if (index < 4) return kAlignment * static_cast<uint64_t>(index + 1);
  if (index >= kSmallClasses) {
    const int top = (index - kSmallClasses) / 16 + kLargeBits + 1;
    return (uint64_t{1} << (top - 1)) + (static_cast<uint64_t>((index - kSmallClasses) % 16 + 1) << (top - 5));
  }
  const int top = index / 4 + 8;
  return (uint64_t{1} << (top - 1)) + (static_cast<uint64_t>(index % 4 + 1) << (top - 3));
}

void* from_system(uint64_t size) {
  const bool huge = size >= 2 * kHugePage;
  void* block = nullptr;
  if (posix_memalign(&block, huge ? kHugePage : kAlignment, size) != 0) return nullptr;
  // Fewer faults: 512 times as much memory comes with each. Where the system refuses, small pages serve as well.
  if (huge) madvise(block, size, MADV_HUGEPAGE);
  return block;
}

}  // namespace

void* allocate(uint64_t size) {
  State& s = state();
  if (size > uint64_t{1} << 62) return nullptr;
  const int index = class_of(size);
  const uint64_t bytes = class_size(index);
  FreeBlock* head;
  {
    SizeClass& size_class = s.classes[index];
    std::lock_guard lock(size_class.mutex);
    ++size_class.allocations;
    head = size_class.free;
    if (head != nullptr) {
      size_class.free = head->next;
      ++size_class.cache_hits;
    }
  }
  const uint64_t now = s.in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  void* block = head;
  if (head != nullptr) {
    s.kept.fetch_sub(bytes, std::memory_order_relaxed);
  } else {
    const bool within = now + s.kept.load(std::memory_order_relaxed) <= s.limit.load(std::memory_order_relaxed);
    block = within ? from_system(bytes) : nullptr;
    if (block == nullptr) {
      s.in_use.fetch_sub(bytes, std::memory_order_relaxed);
      return nullptr;
    }
  }
  uint64_t peak = s.peak.load(std::memory_order_relaxed);
  while (peak < now && !s.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return block;
}

void deallocate(void* block, uint64_t size) {
  State& s = state();
  const int index = class_of(size);
  const uint64_t bytes = class_size(index);
  const uint64_t kept = s.kept.load(std::memory_order_relaxed) + bytes;
  const uint64_t left = s.in_use.fetch_sub(bytes, std::memory_order_relaxed) - bytes;
  if (!kKeep || kept > s.kept_limit || left + kept > s.limit.load(std::memory_order_relaxed)) {
    std::free(block);
    return;
  }
  s.kept.fetch_add(bytes, std::memory_order_relaxed);
  SizeClass& size_class = s.classes[index];
  auto* head = static_cast<FreeBlock*>(block);
  std::lock_guard lock(size_class.mutex);
  head->next = size_class.free;
  size_class.free = head;
}

void release_kept() {
  State& s = state();
  for (int index = 0; index < kClasses; ++index) {
    FreeBlock* head;
    {
      std::lock_guard lock(s.classes[index].mutex);
      head = s.classes[index].free;
      s.classes[index].free = nullptr;
    }
    while (head != nullptr) {
      FreeBlock* const next = head->next;
      s.kept.fetch_sub(class_size(index), std::memory_order_relaxed);
      std::free(head);
      head = next;
    }
  }
}

void reset_after_fork() {
  State& s = state();
  for (SizeClass& size_class : s.classes) {
    new (&size_class.mutex) std::mutex;
    size_class.free = nullptr;
  }
  s.kept.store(0, std::memory_order_relaxed);
}

MemoryStats memory_stats() {
  State& s = state();
  MemoryStats stats{};
  stats.in_use = s.in_use.load(std::memory_order_relaxed);
  stats.peak = s.peak.load(std::memory_order_relaxed);
  stats.reserved = stats.in_use + s.kept.load(std::memory_order_relaxed);
  stats.limit = s.limit.load(std::memory_order_relaxed);
  for (SizeClass& size_class : s.classes) {
    std::lock_guard lock(size_class.mutex);
    stats.allocations += size_class.allocations;
    stats.cache_hits += size_class.cache_hits;
  }
  return stats;
}

void reset_peak() { state().peak.store(state().in_use.load(std::memory_order_relaxed), std::memory_order_relaxed); }

void set_limit(uint64_t bytes) { state().limit.store(bytes, std::memory_order_relaxed); }

}  // namespace backplane::cpu
