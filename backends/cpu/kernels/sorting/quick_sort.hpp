// Quicksort of keys of 32 bits: vectors are divided at a pivot by moving lanes, runs of kShortKeys are left to
// networks.
#pragma once

#include <cstdint>

#include "backplane/plugin.hpp"

namespace backplane::cpu {

// In place, in ascending order, on the host's threads where there are many keys.
void quick_sort(const bp_frame* frame, uint32_t* keys, int64_t n);
void quick_sort(const bp_frame* frame, uint64_t* keys, int64_t n);

}  // namespace backplane::cpu
