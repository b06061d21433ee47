// Matrix products of one dtype: a block computes kTile by kTile elements, each of its 256 threads 4 by 4 of them. Half
// floats are summed in float, and rounded once, behind what may be added.
#pragma once

#include "kernels/device/element.cuh"
#include "kernels/product.hpp"

namespace backplane::cuda {

template <class C>
__device__ C multiply_add(C x, C y, C sum) {
  if constexpr (kSame<C, float>)
    return fmaf(x, y, sum);
  else if constexpr (kSame<C, double>)
    return fma(x, y, sum);
  else
    return add(sum, multiply(x, y));
}

// `addend`: of the same matrices, or nullptr.
template <class T>
__device__ void matmul(const Product& call, const Addend* addend) {
  using C = Compute<T>;
  constexpr int kEach = 4, kSide = kTile / kEach;  // kSide threads a side
  __shared__ C xs[kTileDepth][kTile];
  __shared__ C ys[kTileDepth][kTile];
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  const int64_t row = int64_t{blockIdx.y} * kTile, column = int64_t{blockIdx.x} * kTile;
  for (uint32_t b = blockIdx.z; b < call.operands.count; b += gridDim.z) {
    const Offsets at = place(call.operands, b);
    const T* x = reinterpret_cast<const T*>(call.x) + at.x;
    const T* y = reinterpret_cast<const T*>(call.y) + at.out;
    C sums[kEach][kEach] = {};
    for (int64_t from = 0; from < call.depth; from += kTileDepth) {
      for (int i = threadIdx.x; i < kTile * kTileDepth; i += kThreads) {
        // Neighbouring threads read neighbouring elements of whichever side lies side by side.
        const bool along = call.x_column == 1;
        const int xd = along ? i % kTileDepth : i / kTile, xr = along ? i / kTileDepth : i % kTile;
        const bool x_inside = row + xr < call.rows && from + xd < call.depth;
        xs[xd][xr] = x_inside ? widen(x[(row + xr) * call.x_row + (from + xd) * call.x_column]) : C{};
        const bool across = call.y_column == 1;
        const int yd = across ? i / kTile : i % kTileDepth, yc = across ? i % kTile : i / kTileDepth;
        const bool y_inside = column + yc < call.columns && from + yd < call.depth;
        ys[yd][yc] = y_inside ? widen(y[(from + yd) * call.y_row + (column + yc) * call.y_column]) : C{};
      }
      __syncthreads();
      const int depth = static_cast<int>(min(static_cast<int64_t>(kTileDepth), call.depth - from));
      for (int d = 0; d < depth; ++d) {
        C left[kEach], right[kEach];
#pragma unroll
        for (int k = 0; k < kEach; ++k) left[k] = xs[d][ty + k * kSide], right[k] = ys[d][tx + k * kSide];
#pragma unroll
        for (int r = 0; r < kEach; ++r)
#pragma unroll
          for (int c = 0; c < kEach; ++c) sums[r][c] = multiply_add(left[r], right[c], sums[r][c]);
      }
      __syncthreads();
    }
    const Offsets results = place(call.results, b);
    T* out = reinterpret_cast<T*>(call.out) + results.out;
    const T* added = addend != nullptr ? reinterpret_cast<const T*>(addend->data) + results.x : nullptr;
    for (int r = 0; r < kEach; ++r)
      for (int c = 0; c < kEach; ++c) {
        const int64_t at_row = row + ty + r * kSide, at_column = column + tx + c * kSide;
        if (at_row >= call.rows || at_column >= call.columns) continue;
        if (addend != nullptr)
          sums[r][c] = add(sums[r][c], widen(added[at_row * addend->row + at_column * addend->column]));
        out[at_row * call.out_row + at_column * call.out_column] = narrow<T>(sums[r][c]);
      }
  }
}

}  // namespace backplane::cuda
