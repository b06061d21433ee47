// What the kernels of attention receive; the same text for nvcc and for the host's compiler.
#pragma once

#include "runtime/arguments.hpp"

namespace backplane::cuda {

constexpr int kQueryTile = 128;  // queries that one block of the kernel without a mask takes
// Of the kernels by tiles: rows of a block, its threads without tensor cores and with them, and the columns of results
// that it has, by the features.
constexpr int kTileRows = 64, kLaneThreads = 256, kCoreThreads = 128;
constexpr int kNarrowTile = 64, kWideTile = 128;

// Attention of half floats. Strides in elements; a row of features lies side by side, and begins at a multiple of 16
// bytes.
struct Attention {
  Dimensions query_and_key;  // the batch: the strides of the query as `x`, of the key as `out`
  Dimensions value_and_lse;  // of the value as `x`, of lse as `out`
  Dimensions results;        // of the values as `out`
  const char *query, *key, *value;
  char *values, *lse;  // nullptr: not wanted
  int64_t query_row, key_row, value_row, values_row, lse_step;
  int32_t queries, keys, features, value_features;
  int32_t causal, negative;  // negative: the scale
  float factor;              // what scores are multiplied with, without its sign, in powers of two
};

enum AttentionOperand : int {
  kQuery,
  kKey,
  kValue,
  kMask,
  kLse,
  kValues,
  kCotangent,
  kDelta,
  kQueryGrad,
  kKeyGrad,
  kValueGrad,
  kAttentionOperands
};

// Attention with a mask, its gradient, and attention of any dtype, by tiles of scores. Strides in elements.
struct AttentionTiles {
  uint32_t batches;
  int32_t rank;  // of the batch
  Divider sizes[kMaxRank];
  struct Operand {
    char* data;  // nullptr: not there, or not wanted
    int64_t row, column;
    int64_t batch[kMaxRank];
  } operands[kAttentionOperands];
  int32_t queries, keys, features, value_features;
  int32_t causal;
  int32_t mask_dtype;
  double scale;
};

}  // namespace backplane::cuda
