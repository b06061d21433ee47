// The host memory of the backend: blocks of size classes, kept for reuse, since page faults on fresh memory cost more
// than most kernels.
//
// Any thread may call; a class has its own lock. Blocks are aligned to 64 bytes and are not initialised. Under
// AddressSanitizer nothing is kept, so that it sees every use after free.
#pragma once

#include <cstdint>

namespace backplane::cpu {

struct MemoryStats {
  uint64_t in_use;
  uint64_t peak;
  uint64_t reserved;  // in use or kept
  uint64_t allocations;
  uint64_t cache_hits;
  uint64_t limit;  // of `reserved`
};

// NULL where the system has no memory left, or the limit would be exceeded: then release_kept() may help. size > 0.
void* allocate(uint64_t size);
// `size` as it was asked for.
void deallocate(void* block, uint64_t size);
// Gives all kept blocks back to the system.
void release_kept();
MemoryStats memory_stats();
void reset_peak();               // to what is in use
void set_limit(uint64_t bytes);  // UINT64_MAX: none
// In a forked child, where another thread of the parent may have held a lock: new locks, nothing kept.
void reset_after_fork();

}  // namespace backplane::cpu
