// Products of matrices: a workgroup makes tiles of TILE x TILE, passing both operands through shared memory, 16 along
// the inner dimension at a time; an invocation keeps BLOCK x BLOCK sums. Elements outside a matrix count as zero.
//
// at: result, x, y. n: rows, inner, columns, matrices, rank of the batch; strides of rows and of columns of the
// result, of x, of y. dims: rows of (size, strides of the result, x, y) of the batch.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BACKPLANE_GROUP_SHAPE
layout(local_size_x = 16, local_size_y = 16) in;
#include "class.glsl"

const uint kDepth = 16, BLOCK = TILE / 16;
shared T x_tile[kDepth][TILE];
shared T y_tile[kDepth][TILE];

void main() {
  const uint rows = n[0], inner = n[1], columns = n[2];
  const uint across = (columns + TILE - 1u) / TILE, down = (rows + TILE - 1u) / TILE;
  const uvec2 lane = gl_LocalInvocationID.xy;
  const uint place = lane.y * 16u + lane.x;
  for (uint tile = gl_WorkGroupID.x; tile < across * down * n[3]; tile += gl_NumWorkGroups.x) {
    int batch[4];
    offsets_of(tile / (across * down), dims, n[4], 4u, batch);
    const uint row = tile / across % down * TILE, column = tile % across * TILE;
    T sums[BLOCK][BLOCK];
    for (uint a = 0u; a < BLOCK; ++a)
      for (uint b = 0u; b < BLOCK; ++b) sums[a][b] = T(0);
    for (uint depth = 0u; depth < inner; depth += kDepth) {
      for (uint e = place; e < kDepth * TILE; e += 256u) {
        // Neighbours read along the operand's rows or columns, whichever is contiguous.
        const bool x_by_rows = n[8] == 1u, y_by_rows = n[10] == 1u;
        const uint xk = x_by_rows ? e % kDepth : e / TILE, xr = x_by_rows ? e / kDepth : e % TILE;
        const uint yk = y_by_rows ? e / TILE : e % kDepth, yc = y_by_rows ? e % TILE : e / kDepth;
        x_tile[xk][xr] = T(0);
        y_tile[yk][yc] = T(0);
        if (row + xr < rows && depth + xk < inner)
          x_tile[xk][xr] = LOAD(element(at[1], batch[1] + int((row + xr) * n[7] + (depth + xk) * n[8]), kIn), kIn);
        if (column + yc < columns && depth + yk < inner)
          y_tile[yk][yc] = LOAD(element(at[2], batch[2] + int((depth + yk) * n[9] + (column + yc) * n[10]), kIn), kIn);
      }
      barrier();
      for (uint k = 0u; k < kDepth; ++k) {
        T left[BLOCK], right[BLOCK];
        for (uint a = 0u; a < BLOCK; ++a) left[a] = x_tile[k][a * 16u + lane.y];
        for (uint b = 0u; b < BLOCK; ++b) right[b] = y_tile[k][b * 16u + lane.x];
        for (uint a = 0u; a < BLOCK; ++a)
          for (uint b = 0u; b < BLOCK; ++b) sums[a][b] = add(sums[a][b], times(left[a], right[b]));
      }
      barrier();
    }
    for (uint a = 0u; a < BLOCK; ++a)
      for (uint b = 0u; b < BLOCK; ++b) {
        const uint r = row + a * 16u + lane.y, c = column + b * 16u + lane.x;
        if (r < rows && c < columns)
          store(element(at[0], batch[0] + int(r * n[5] + c * n[6]), kOut), kOut, sums[a][b]);
      }
  }
}
