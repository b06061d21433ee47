// conv2d and its adjoints, tile by tile: see conv2d.glsl for what they are, tiles.glsl for how, and for kOption.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "tiles.glsl"
#include "conv2d.glsl"

void main() {
  receive();
  const uint groups = n[1], slices = n[16], place = gl_LocalInvocationIndex;
  const uint rows = rows_of(), inner = inner_of(), columns = columns_of();
  const uint across = (columns + kTileColumns - 1u) / kTileColumns, down = (rows + kTileRows - 1u) / kTileRows;

  const uint run = run_of(), next_run = next_run_of(run);
  const uvec2 run_step = uvec2(kDepth / run, kDepth % run);

  // An invocation keeps its column, and walks the inner dimension.
  const uvec2 inner_sizes = inner_sizes_of(), column_sizes = column_sizes_of();
  const uvec3 inner_step = digits(256u / kTileColumns, inner_sizes);
  const uint lane_column = place % kTileColumns;
  const uint length = (inner + slices - 1u) / slices;

  for (uint tile = gl_WorkGroupID.x; tile < across * down * groups * slices; tile += gl_NumWorkGroups.x) {
    const uint column = tile % across * kTileColumns, row = tile / across % down * kTileRows;
    const uint group = tile / (across * down) % groups, slice = tile / (across * down * groups);
    const uint begin = slice * length, end = min(begin + length, inner);
    const uint group_start = group_start_of(group, run);
    uvec2 at_run = uvec2((begin + place % kDepth) / run, (begin + place % kDepth) % run);
    uvec3 at_inner = digits(begin + place / kTileColumns, inner_sizes);
    const uvec3 at_column = digits(column + lane_column, column_sizes);
    clear_sums();
    for (uint depth = begin; depth < end; depth += kDepth) {
      const uint left_at = group_start + at_run.x * next_run + at_run.y;
      for (uint i = 0u; i < kDown; ++i) {
        const uint k = place % kDepth, r = place / kDepth + 16u * i;
        T value = T(0);
        if (row + r < rows && depth + k < end)
          value = LOAD(element(at[1], int(left_at + (row + r) * run), kIn), kIn);
        left_tile[k * kTileRows + r] = value;
      }
      at_run += run_step;
      if (at_run.y >= run) at_run += uvec2(1u, -run);
      for (uint i = 0u; i < kAcross; ++i) {
        const uint k = place / kTileColumns + 256u / kTileColumns * i;
        T value = T(0);
        if (column + lane_column < columns && depth + k < end)
          value = kFunction == kOfKernels ? shown(at_column, at_inner, group) : shown(at_inner, at_column, group);
        right_tile[k * kTileColumns + lane_column] = value;
        at_inner = sum_of(at_inner, inner_step, inner_sizes);
      }
      barrier();
      add_tiles();
      barrier();
    }
    for (uint a = 0u; a < kDown; ++a)
      for (uint b = 0u; b < kAcross; ++b) {
        const uint r = row + a * 16u + gl_LocalInvocationID.y, c = column + b * 16u + gl_LocalInvocationID.x;
        if (r >= rows || c >= columns) continue;
        const uint to = target_of(r, c, digits(c, column_sizes), group, slice);
        store(element(at[0], int(to), kOut), kOut, sums[a * kAcross + b]);
      }
  }
}
