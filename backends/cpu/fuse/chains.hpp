// Superinstructions: up to three additions, subtractions, products and quotients of float32 or float64 in one loop, of
// which only the last result is stored. Each is rounded as it is alone.
#pragma once

#include <cstdint>

#include "backplane/abi/base.h"
#include "loops/chain_link.hpp"

namespace backplane::cpu::fuse {

inline constexpr int kLongestChain = 3;

inline constexpr int kLinks = 7, kFirstLinks = 5;  // the first link has its operands in order

// Operand 0 is the result. `step` is 0 for a value that is the same in all columns of a row, else columns are adjacent.
struct ChainRows {
  char* p[kLongestChain + 2];
  int64_t row[kLongestChain + 2];  // bytes
  bool same[kLongestChain + 2];
  int64_t rows, columns;
};
using Chain = void (*)(const ChainRows& rows);
Chain find_chain(bp_dtype dtype, const Link (&links)[kLongestChain]);

}  // namespace backplane::cpu::fuse
