// What a reduction computes, apart from how its tensor is walked: loops over accumulators of one dtype.
//
// Tables are filled once and constant afterwards; the loops are pure.
#pragma once

#include <cstdint>

#include "backplane/abi/base.h"

namespace backplane::cpu {

// Rows of floats that are longer than two of these are halved, at multiples of it: the error of a sum grows with the
// logarithm of its length.
inline constexpr int64_t kPairwiseBlock = 1024;

struct Reducer {
  // *accumulator = the reduction of n >= 1 elements of the accumulator's dtype; floating sums pairwise.
  void (*row)(const char* x, int64_t stride, int64_t n, char* accumulator) = nullptr;
  // accumulators[j] = f(accumulators[j], x[j]); both contiguous.
  void (*merge)(char* accumulators, const char* x, int64_t n) = nullptr;
  // The same with 4 or 8 rows of x, `stride` bytes apart; the first ones make the accumulators.
  void (*merge_rows)(char* accumulators, const char* x, int64_t stride, int64_t rows, bool first, int64_t n) = nullptr;
  // Of contiguous half floats to accumulators in float32; NULL for other accumulators.
  struct OfHalf {
    void (*row)(const char* x, int64_t n, char* accumulator) = nullptr;
    void (*merge_rows)(char* accumulators, const char* x, int64_t stride, int64_t rows, bool first,
                       int64_t n) = nullptr;
  } of_float16{}, of_bfloat16{};

  // Where x may be read as it is: its loops, else NULL.
  const OfHalf* of(bp_dtype x) const {
    const OfHalf* loops = x == BP_FLOAT16 ? &of_float16 : x == BP_BFLOAT16 ? &of_bfloat16 : nullptr;
    return loops != nullptr && loops->row != nullptr ? loops : nullptr;
  }
};

enum class Reduction { kSum, kProd, kMax, kMin, kAny, kAll };
inline constexpr int kReductions = 6;

struct ReducerTable {
  Reducer by[kReductions][BP_DTYPE_COUNT];  // [reduction][dtype of the accumulator]
};
const ReducerTable& reducers();

}  // namespace backplane::cpu
