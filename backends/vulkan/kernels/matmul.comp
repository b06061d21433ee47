// The product of two row-major matrices, (rows, inner) by (inner, columns), in float32.
//
// A workgroup makes tiles of 16 x 16, passing both operands through shared memory; elements outside a matrix count as
// zero. Tiles are numbered in one dimension, since a device need not take more than 65,535 workgroups along one.
#version 450
#extension GL_EXT_buffer_reference : require

const uint kTile = 16;
layout(local_size_x = kTile, local_size_y = kTile) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };

layout(push_constant, std430) uniform Push {
  Floats result;
  Floats x;
  Floats y;
  uint rows;
  uint inner;
  uint columns;
  uint tiles;
};

shared float x_tile[kTile][kTile];
shared float y_tile[kTile][kTile];

void main() {
  const uint tiles_across = (columns + kTile - 1) / kTile;
  const uvec2 local = gl_LocalInvocationID.xy;
  for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += gl_NumWorkGroups.x) {
    const uint row = tile / tiles_across * kTile + local.y;
    const uint column = tile % tiles_across * kTile + local.x;
    float sum = 0;
    for (uint k = 0; k < inner; k += kTile) {
      x_tile[local.y][local.x] = row < rows && k + local.x < inner ? x.at[row * inner + k + local.x] : 0;
      y_tile[local.y][local.x] = column < columns && k + local.y < inner ? y.at[(k + local.y) * columns + column] : 0;
      barrier();
      for (uint i = 0; i < kTile; ++i) sum += x_tile[local.y][i] * y_tile[i][local.x];
      barrier();
    }
    if (row < rows && column < columns) result.at[row * columns + column] = sum;
  }
}
