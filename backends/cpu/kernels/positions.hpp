// Are positions along an axis in range? One pass of vectors, before a loop that need not ask. Pure.
#pragma once

#include <cstdint>

namespace backplane::cpu {

// Whether all n positions lie in [0, size).
bool all_inside(const int64_t* positions, int64_t n, int64_t size);

}  // namespace backplane::cpu
