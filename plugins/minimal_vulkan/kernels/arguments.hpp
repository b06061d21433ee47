// What every kernel receives: the same text for the host's compiler and for the device's.
#pragma once

#include <cstdint>

#include "kernels/list.h"

namespace minimal {

constexpr int kMaxDims = 64;  // of both loops together: a tensor has no more
constexpr int kMaxOperands = 4;

// In device memory: plain numbers, at offsets that the device's code knows.
struct Arguments {
  uint64_t at[kMaxOperands];  // addresses, the result's first
  int64_t n[6];               // numbers; what they mean stands at the kernel
  uint64_t found;             // address of a word that is set where data are bad; 0: nobody looks
  int64_t items;              // how many there are to do
  uint32_t rank[2];           // dimensions of the first loop and of the second one
  uint32_t function, second;  // functions of the registry over two elements, or one, by their number in its lists
  uint32_t in, out;           // dtypes of what is read and of what is written
  int64_t rows[kMaxDims]
              [1 + kMaxOperands];  // a size, then the bytes of a step in each operand; the last dim moves first
};

}  // namespace minimal
