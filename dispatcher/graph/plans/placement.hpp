// Places blocks of known lifetimes into one arena, so that those which never live at once may share bytes.
//
// Pure. Best fit in the order of first use, neighbours joined again: O(n log n).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace backplane::core::graph {

// Of steps, both inclusive; first <= last.
struct Lifetime {
  uint64_t size;
  uint32_t first;
  uint32_t last;
};

struct Placement {
  std::vector<uint64_t> offsets;  // per block, a multiple of the alignment
  uint64_t size = 0;              // of the arena
  uint64_t separate = 0;          // what it would be without sharing
  uint64_t bound = 0;             // the most bytes that live at once: no arena is smaller
};

// `alignment` is a power of two. Throws Error(BP_ERROR_MEMORY) where the sizes do not fit 64 bits.
Placement place_blocks(std::span<const Lifetime> blocks, uint64_t alignment);

}  // namespace backplane::core::graph
