// What kernels of random numbers receive; the same text for nvcc and for the host's compiler.
#pragma once

#include "runtime/arguments.hpp"

namespace backplane::cuda {

// Elements of a contiguous result from the words of Philox that follow `counter`.
struct Draw {
  char* out;
  uint64_t count;
  uint64_t key, counter;
};

// Numbers on [low, high), as elements of the result's dtype, or of its parts'. `unit`: low is 0 and high is 1.
struct UniformDraw {
  Draw draw;
  Number low, high, width;
  int32_t unit;
};

// `mean` and `deviation` as elements of the dtype that is computed in. `standard`: they are 0 and 1.
struct NormalDraw {
  Draw draw;
  Number mean, deviation;
  int32_t standard;
};

// Integers from `low` on, `width` of them. `inverse`: the whole part of (2^64 - 1) / width.
struct IntegerDraw {
  Draw draw;
  int64_t low;
  uint64_t width, inverse;
};

}  // namespace backplane::cuda
