// Products of matrices, block by block.
//
// at, n, dims: as in matmul.comp. kOption: bits 0 to 4 as in blocks.glsl; 5, 6, 7: two neighbours of x along the inner
// dimension, of y along a row, of y along the inner dimension lie in one aligned word.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "blocks.glsl"

const bool kLeftPairs = (kOption & 32u) != 0u, kRightPairs = (kOption & 64u) != 0u, kRightRuns = (kOption & 128u) != 0u;

void main() {
  receive();
  const uint rows = n[0], inner = n[1], columns = n[2], slices = n[11];
  const uint length = ((inner + slices - 1u) / slices + 1u) / 2u * 2u, items = item_count(rows, columns, n[3], slices);
  for (uint i = first_item(); i < items; i += items_at_once()) {
    const Item item = item_at(i, rows, columns, n[3]);
    const uint begin = item.slice * length, end = min(begin + length, inner);
    int batch[4];
    offsets_of(item.outer, dims, n[4], 3u, batch);
    // Beyond an edge the last row or column, or pair of columns, is taken again.
    uint64_t x[kDown], y[kAcross];
    [[unroll]] for (uint a = 0u; a < kDown; a += gl_SubgroupSize) {
      const uint row = item.row + a + gl_SubgroupInvocationID % kDown;
      x[a] = element(at[1], batch[1] + int(min(row, rows - 1u) * n[7]), kIn);
    }
    [[unroll]] for (uint b = 0u; b < kAcross; ++b) {
      const uint last = kRightPairs && kAcross > 1u ? columns - 2u + b % 2u : columns - 1u;
      y[b] = element(at[2], batch[2] + int(min(item.column + b, last) * n[10]), kIn);
    }
    clear_sums();
    for (uint k = begin; k < end; k += 2u) {
      const bool lone = k + 1u == end;
      const uint next = lone ? k : k + 1u;
      T left[kDown], left_next[kDown], right[kAcross], right_next[kAcross];
      [[unroll]] for (uint a = 0u; a < kDown; a += gl_SubgroupSize) {
        if (kLeftPairs) {
          load_pair(element(x[a], int(k * n[8]), kIn), left[a], left_next[a]);
        } else {
          left[a] = LOAD(element(x[a], int(k * n[8]), kIn), kIn);
          left_next[a] = LOAD(element(x[a], int(next * n[8]), kIn), kIn);
        }
        if (lone) left_next[a] = T(0);
      }
      [[unroll]] for (uint b = 0u; b < kAcross; ++b) {
        if (kRightRuns) {
          load_pair(element(y[b], int(k * n[9]), kIn), right[b], right_next[b]);
        } else if (!kRightPairs || kAcross == 1u) {
          right[b] = LOAD(element(y[b], int(k * n[9]), kIn), kIn);
          right_next[b] = LOAD(element(y[b], int(next * n[9]), kIn), kIn);
        } else if (b % 2u == 0u) {
          load_pair(element(y[b], int(k * n[9]), kIn), right[b], right[b + 1u]);
          load_pair(element(y[b], int(next * n[9]), kIn), right_next[b], right_next[b + 1u]);
        }
      }
      if (lone)
        [[unroll]] for (uint b = 0u; b < kAcross; ++b) right_next[b] = T(0);
      add_products(left, left_next, right, right_next);
    }
    const int result = batch[0] + (slices > 1u ? int(item.slice * n[3] * rows * columns) : 0);
    [[unroll]] for (uint a = 0u; a < kDown; ++a)
      [[unroll]] for (uint b = 0u; b < kAcross; ++b)
        if (item.row + a < rows && item.column + b < columns)
          store(element(at[0], result + int((item.row + a) * n[5] + (item.column + b) * n[6]), kOut), kOut,
                sums[a * kAcross + b]);
  }
}
