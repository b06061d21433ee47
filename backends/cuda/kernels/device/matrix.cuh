// Matrices of elements.
#pragma once

#include "kernels/device/element.cuh"

namespace backplane::cuda {

// A matrix in memory. Strides in elements.
template <class T>
struct Matrix {
  const T* data;
  int64_t row, column;
  int32_t rows, columns;

  __device__ Compute<T> at(int32_t r, int32_t c) const {
    return r < rows && c < columns ? Compute<T>(widen(data[r * row + c * column])) : Compute<T>{};
  }
};

}  // namespace backplane::cuda
