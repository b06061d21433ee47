// Products of matrices, block by block.
//
// at, n, dims: as in matmul.comp. kOption: bits 0 to 3 as in blocks.glsl; 4, 5, 7: two neighbours of x along the inner
// dimension, of y along a row, of y along the inner dimension lie in one aligned word; 6: the inner dimension is odd. Two
// steps of it are made at a time.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "blocks.glsl"

const bool kLeftPairs = (kOption & 16u) != 0u, kRightPairs = (kOption & 32u) != 0u, kOdd = (kOption & 64u) != 0u,
           kRightRuns = (kOption & 128u) != 0u;

void main() {
  receive();
  const uint rows = n[0], inner = n[1], columns = n[2], slices = n[11];
  const uint across = (columns + kBlockColumns - 1u) / kBlockColumns, down = (rows + kBlockRows - 1u) / kBlockRows;
  const uint blocks = across * down * n[3], length = ((inner + slices - 1u) / slices + 1u) / 2u * 2u;
  const uint lane = gl_SubgroupInvocationID;
  for (uint i = first_block(); i < blocks * slices; i += all_subgroups()) {
    const uint block = i % blocks, slice = i / blocks, begin = slice * length, end = min(begin + length, inner);
    int batch[4];
    offsets_of(block / (across * down), dims, n[4], 3u, batch);
    const uint row = block / across % down * kBlockRows, column = (block % across * kLanes + lane) * kAcross;
    // Beyond an edge the last row or column, or pair of columns, is taken again.
    uint64_t x[kDown], y[kAcross];
    for (uint a = 0u; a < kDown; ++a)
      x[a] = element(at[1], batch[1] + int(min(row + a * kLanes + lane, rows - 1u) * n[7]), kIn);
    for (uint b = 0u; b < kAcross; ++b) {
      const uint last = kRightPairs && kAcross > 1u ? columns - 2u + b % 2u : columns - 1u;
      y[b] = element(at[2], batch[2] + int(min(column + b, last) * n[10]), kIn);
    }
    clear_sums();
    for (uint k = begin; k < end; k += 2u) {
      const bool lone = kOdd && k + 1u == end;
      const uint next = lone ? k : k + 1u;
      T left[kDown], left_next[kDown], right[kAcross], right_next[kAcross];
      for (uint a = 0u; a < kDown; ++a) {
        if (kLeftPairs) {
          load_pair(element(x[a], int(k * n[8]), kIn), left[a], left_next[a]);
        } else {
          left[a] = LOAD(element(x[a], int(k * n[8]), kIn), kIn);
          left_next[a] = LOAD(element(x[a], int(next * n[8]), kIn), kIn);
        }
        if (lone) left_next[a] = T(0);
      }
      for (uint b = 0u; b < kAcross; b += 2u) {
        if (kRightRuns) {
          for (uint c = b; c < min(b + 2u, kAcross); ++c) load_pair(element(y[c], int(k * n[9]), kIn), right[c], right_next[c]);
        } else if (kRightPairs && kAcross > 1u) {
          load_pair(element(y[b], int(k * n[9]), kIn), right[b], right[b + 1u]);
          load_pair(element(y[b], int(next * n[9]), kIn), right_next[b], right_next[b + 1u]);
        } else {
          for (uint c = b; c < min(b + 2u, kAcross); ++c) {
            right[c] = LOAD(element(y[c], int(k * n[9]), kIn), kIn);
            right_next[c] = LOAD(element(y[c], int(next * n[9]), kIn), kIn);
          }
        }
        if (lone)
          for (uint c = b; c < min(b + 2u, kAcross); ++c) right_next[c] = T(0);
      }
      add_product(left, right);
      add_product(left_next, right_next);
    }
    const int result = batch[0] + (slices > 1u ? int(slice * n[3] * rows * columns) : 0);
    for (uint b = 0u; b < kAcross; ++b) {
      int target = result + int(row * n[5] + (column + b) * n[6]);
      for (uint a = 0u; a < kDown; ++a)
        for (uint l = 0u; l < kLanes; ++l) {
          if (row + a * kLanes + l < rows && column + b < columns)
            store(element(at[0], target, kOut), kOut, sums[a][l][b]);
          target += int(n[5]);
        }
    }
  }
}
