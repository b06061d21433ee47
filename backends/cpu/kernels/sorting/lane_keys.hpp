// A lane's elements as the keys of sort_keys.hpp and back, in vectors.
#pragma once

#include <cstdint>

#include "backplane/abi/base.h"

namespace backplane::cpu {

// n elements of a real dtype, `stride` bytes apart; their keys have 64 bits where they do, otherwise 32.
void keys_of_lane(bp_dtype dtype, const char* x, int64_t stride, int64_t n, bool descending, void* keys);
void lane_of_keys(bp_dtype dtype, const void* keys, int64_t n, bool descending, char* out, int64_t stride);

}  // namespace backplane::cpu
