// Products of matrices, tile by tile. Elements outside a matrix count as zero.
//
// at: result, x, y. n: rows, inner, columns, matrices, rank of the batch; strides of rows and of columns of the
// result, of x, of y; slices. dims: rows with strides of the result, of x and of y of the batch. The inner dimension may
// be cut into slices, each of which makes a whole contiguous result; they follow each other. kOption: as in tiles.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "tiles.glsl"

void main() {
  receive();
  const uint rows = n[0], inner = n[1], columns = n[2], slices = n[11];
  const uint across = (columns + kTileColumns - 1u) / kTileColumns, down = (rows + kTileRows - 1u) / kTileRows;
  const uint place = gl_LocalInvocationIndex;
  // Neighbours read along the operand's rows or columns, whichever is contiguous.
  const bool x_by_rows = n[8] == 1u, y_by_rows = n[10] == 1u;
  const uint tiles = across * down * n[3], length = (inner + slices - 1u) / slices;
  for (uint i = gl_WorkGroupID.x; i < tiles * slices; i += gl_NumWorkGroups.x) {
    const uint tile = i % tiles, slice = i / tiles, end = min(slice * length + length, inner);
    int batch[4];
    offsets_of(tile / (across * down), dims, n[4], 3u, batch);
    const uint row = tile / across % down * kTileRows, column = tile % across * kTileColumns;
    clear_sums();
    for (uint depth = slice * length; depth < end; depth += kDepth) {
      for (uint a = 0u; a < kDown; ++a) {
        const uint e = place + 256u * a;
        const uint k = x_by_rows ? e % kDepth : e / kTileRows, r = x_by_rows ? e / kDepth : e % kTileRows;
        T value = T(0);
        if (row + r < rows && depth + k < end)
          value = LOAD(element(at[1], batch[1] + int((row + r) * n[7] + (depth + k) * n[8]), kIn), kIn);
        left_tile[k * kTileRows + r] = value;
      }
      for (uint b = 0u; b < kAcross; ++b) {
        const uint e = place + 256u * b;
        const uint k = y_by_rows ? e / kTileColumns : e % kDepth, c = y_by_rows ? e % kTileColumns : e / kDepth;
        T value = T(0);
        if (column + c < columns && depth + k < end)
          value = LOAD(element(at[2], batch[2] + int((depth + k) * n[9] + (column + c) * n[10]), kIn), kIn);
        right_tile[k * kTileColumns + c] = value;
      }
      barrier();
      add_tiles();
      barrier();
    }
    const int result = batch[0] + (slices > 1u ? int(slice * n[3] * rows * columns) : 0);
    for (uint a = 0u; a < kDown; ++a)
      for (uint b = 0u; b < kAcross; ++b) {
        const uint r = row + a * 16u + gl_LocalInvocationID.y, c = column + b * 16u + gl_LocalInvocationID.x;
        if (r < rows && c < columns)
          store(element(at[0], result + int(r * n[5] + c * n[6]), kOut), kOut, sums[a * kAcross + b]);
      }
  }
}
