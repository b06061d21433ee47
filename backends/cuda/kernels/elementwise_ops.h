/* The elementwise ops of CUDA, a line each: the op, how many operands it reads, and its formula over floats x and y. */
#pragma once

// A product would be taken for a pointer.
// clang-format off
#define BACKPLANE_CUDA_ELEMENTWISE(ROW) \
  ROW(copy, 1, x)                       \
  ROW(add, 2, x + y)                    \
  ROW(subtract, 2, x - y)               \
  ROW(multiply, 2, x * y)
// clang-format on
