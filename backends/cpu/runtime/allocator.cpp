// Size classes: four per power of two from 64 bytes, so that a block is at most a quarter larger than asked for. Each
// class is a stack of free blocks, linked through the blocks themselves.
//
// The state is never destroyed: tensors may outlive static destructors.
#include "runtime/allocator.hpp"

#include <sys/mman.h>

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
constexpr int kClasses = 4 * 58;
// What is kept at most, beside what is in use: enough for the working set of a training step of moderate size; beyond
// it blocks go back to the system at once.
constexpr uint64_t kKeptLimit = uint64_t{1} << 30;

struct FreeBlock {
  FreeBlock* next;
};
struct alignas(64) SizeClass {
  std::mutex mutex;
  FreeBlock* free = nullptr;
};
struct State {
  SizeClass classes[kClasses];
  std::atomic<uint64_t> in_use{0};
  std::atomic<uint64_t> peak{0};
  std::atomic<uint64_t> kept{0};
};
State& state() {
  static State* const instance = new State;
  return *instance;
}

// Sizes up to 256 are multiples of 64; above, 2^k * (4, 5, 6, 7) / 4.
int class_of(uint64_t size) {
  if (size <= 4 * kAlignment) return static_cast<int>((size - 1) / kAlignment);
  const int top = std::bit_width(size - 1);  // 2^(top-1) < size <= 2^top
  const int quarter = static_cast<int>((size - 1) >> (top - 3)) & 3;
  return 4 * (top - 8) + quarter;
}
uint64_t class_size(int index) {
  if (index < 4) return kAlignment * static_cast<uint64_t>(index + 1);
  const int top = index / 4 + 8;
  return (uint64_t{1} << (top - 1)) + (static_cast<uint64_t>(index % 4 + 1) << (top - 3));
}

void* from_system(uint64_t size) {
  const bool huge = size >= 2 * kHugePage;
  void* block = std::aligned_alloc(huge ? kHugePage : kAlignment, size);
  // Fewer faults: 512 times as much memory comes with each. Where the system refuses, small pages serve as well.
  if (block != nullptr && huge) madvise(block, size, MADV_HUGEPAGE);
  return block;
}

uint64_t rounded(int index) {
  const uint64_t size = class_size(index);
  return size >= 2 * kHugePage ? (size + kHugePage - 1) & ~(kHugePage - 1) : size;
}

}  // namespace

void* allocate(uint64_t size) {
  State& s = state();
  if (size > uint64_t{1} << 62) return nullptr;
  const int index = class_of(size);
  const uint64_t bytes = rounded(index);
  void* block = nullptr;
  if (kKeep) {
    SizeClass& size_class = s.classes[index];
    std::lock_guard lock(size_class.mutex);
    if (FreeBlock* head = size_class.free) {
      size_class.free = head->next;
      block = head;
    }
  }
  if (block != nullptr) {
    s.kept.fetch_sub(bytes, std::memory_order_relaxed);
  } else {
    block = from_system(bytes);
    if (block == nullptr) {
      release_kept();
      block = from_system(bytes);
      if (block == nullptr) return nullptr;
    }
  }
  const uint64_t now = s.in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  uint64_t peak = s.peak.load(std::memory_order_relaxed);
  while (peak < now && !s.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return block;
}

void deallocate(void* block, uint64_t size) {
  State& s = state();
  const int index = class_of(size);
  const uint64_t bytes = rounded(index);
  s.in_use.fetch_sub(bytes, std::memory_order_relaxed);
  if (!kKeep || s.kept.load(std::memory_order_relaxed) + bytes > kKeptLimit) {
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
      s.kept.fetch_sub(rounded(index), std::memory_order_relaxed);
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
  const uint64_t in_use = s.in_use.load(std::memory_order_relaxed);
  return {in_use, s.peak.load(std::memory_order_relaxed), in_use + s.kept.load(std::memory_order_relaxed)};
}

}  // namespace backplane::cpu
