// Conversion of rows of elements between any two dtypes.
#pragma once

#include <cstdint>

#include "backplane/abi/base.h"

namespace backplane::cpu {

using CastLoop = void (*)(const char* source, int64_t source_stride, char* destination, int64_t destination_stride,
                          int64_t n);
CastLoop cast_loop_of(bp_dtype from, bp_dtype to);

// n elements from source to destination, strides in bytes. Floating to integer truncates toward zero (out of range: the
// low bits of int64, or its minimum); complex to real takes the real part; to bool: is it other than 0.
void cast_row(bp_dtype from, const char* source, int64_t source_stride, bp_dtype to, char* destination,
              int64_t destination_stride, int64_t n);

}  // namespace backplane::cpu
