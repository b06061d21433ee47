// The product at the heart of direct convolution: rows of the right operand are shifted windows into one block of
// memory.
#pragma once

#include <cstdint>

namespace backplane::cpu {

inline constexpr int64_t kShiftedColumns = 64;  // columns of a block

// c[i * kShiftedColumns + j] = the sum over k < depth of a[i * depth + k] * b[offsets[k] + j], for i < rows and
// j < kShiftedColumns. Columns are computed whether they mean something or not: b + offsets[k] must be readable for all
// of them. Any thread may call.
void shifted_product(const float* a, int64_t rows, int64_t depth, const float* b, const int64_t* offsets, float* c);

}  // namespace backplane::cpu
