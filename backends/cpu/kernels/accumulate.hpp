// Writing or adding elements where they may meet others: the scatter half of indexing.
#pragma once

#include <cstdint>

#include "backplane/abi/base.h"

namespace backplane::cpu {

// n elements of one dtype, strides in bytes: to[i] = from[i], or to[i] += from[i] (bool: or).
using ScatterRow = void (*)(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n);

ScatterRow scatter_row(bp_dtype dtype, bool accumulate);

}  // namespace backplane::cpu
