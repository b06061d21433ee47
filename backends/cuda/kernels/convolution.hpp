// What the kernels of convolutions receive; the same text for nvcc and for the host's compiler.
//
// Taps are (channel, down, across) of a kernel, places (image, down, across) of what windows or adjoint windows stand
// on. A tap at a place shows the element of `right` at place * place_step + origin + tap * tap_step, along each axis;
// nothing where that lies outside. With `divisor` above 1 it shows the element at that by the divisor, where it is
// whole.
#pragma once

#include "runtime/arguments.hpp"

namespace backplane::cuda {

constexpr uint32_t kConvolutionThreads = 128;
constexpr uint32_t kConvolutionColumns = 128;  // of a tile; its rows are 32 or 64
constexpr uint32_t kConvolutionDepth = 8;      // of left and right in shared memory at a time
constexpr uint32_t kTensorDepth = 32;          // likewise, on tensor cores

struct ShownAxis {
  Divider taps, places;  // how many there are
  Divider divisor;
  int32_t size;  // of what is shown
  int32_t place_step, origin, tap_step;
};

// Per group, rows x inner times inner x columns. Either the inner dimension are taps and the columns places,
// or the other way around.
struct Convolution {
  uint32_t rows, inner, columns;
  uint32_t slice;     // of the inner dimension, that a block takes
  Divider row_tiles;  // of 32 or 64 rows
  // Element (row, k) of `left` lies at row * left_row + k / run * left_run + k % run.
  const char* left;
  Divider run;
  int32_t left_group, left_row, left_run;
  const char* right;  // planes of down.size * across.size
  ShownAxis down, across;
  int32_t right_group, right_image;
  // Element (row, column) of `out` lies at column / area * out_image + row * area + column % area. With more than one
  // slice, sums go to `partial`, [slice][out] in the type that is computed in.
  char* out;
  char* partial;
  Divider area;
  int32_t out_group, out_image;
  uint32_t out_count;
  uint32_t slices;
  int32_t together;  // four columns lie side by side, and may be written at once
};

}  // namespace backplane::cuda
