// What a product's kernel receives beside the product (runtime/arguments.hpp); the same text for nvcc and for the
// host's compiler.
#pragma once

#include "runtime/arguments.hpp"

namespace backplane::cuda {

// The addend of a product, with strides in elements; the batch strides are its results' `x`.
struct Addend {
  const char* data;
  int64_t row, column;
};

}  // namespace backplane::cuda
