// Attention and its gradients by a workgroup per block of rows; see attention.glsl. The tile's others pass through
// shared memory, kChunk features at a time, where all lanes read the same element at once.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BACKPLANE_GROUP_SHAPE
layout(local_size_x = 64) in;
#include "class.glsl"

const uint kLanes = 64, kTile = 16, kDown = 1u << (kOption & 3u), kBlockRows = kDown * kLanes;
const uint kPart = 16, kParts = 1u << (kOption >> 2u & 3u);  // 64 features at most
const uint kChunk = 64;

#define OVER_TILE [[unroll]]
#include "attention.glsl"

shared T chunk[kTile * kChunk];  // other by other

uint lane() { return gl_LocalInvocationID.x; }
uint first_block() { return gl_WorkGroupID.x; }
uint all_blocks() { return gl_NumWorkGroups.x; }

// Features [begin, begin + count) of the tile's others, and zeros for others that are not there. Between barriers.
void share(Lines others, uint tile, uint begin, uint count) {
  barrier();
  for (uint i = lane(); i < kTile * kChunk; i += kLanes) {
    const uint l = i / kChunk, k = i % kChunk;
    T value = T(0);
    if (k < count && tile + l < other_count())
      value = LOAD(element(line_of(others, tile + l), int(begin + k) * others.along, kIn), kIn);
    chunk[i] = value;
  }
  barrier();
}

void add_products(inout T products[kDown][kTile], Lines rows, Lines others, uint inner, uint row, uint tile) {
  uint64_t lines[kDown];
  [[unroll]] for (uint a = 0u; a < kDown; ++a) lines[a] = line_of(rows, min(row_of(row, a), row_count() - 1u));
  for (uint begin = 0u; begin < inner; begin += kChunk) {
    const uint count = min(kChunk, inner - begin);
    share(others, tile, begin, count);
    for (uint k = 0u; k < count; ++k) {
      T mine[kDown];
      [[unroll]] for (uint a = 0u; a < kDown; ++a)
        mine[a] = LOAD(element(lines[a], int(begin + k) * rows.along, kIn), kIn);
      [[unroll]] for (uint l = 0u; l < kTile; ++l)
        [[unroll]] for (uint a = 0u; a < kDown; ++a) products[a][l] += mine[a] * chunk[l * kChunk + k];
    }
  }
}

uint feature_of(uint part, uint m) { return part * kPart + m; }

void of_others(Lines line, uint tile, out T elements[kTile]) {
  [[unroll]] for (uint l = 0u; l < kTile; ++l)
    elements[l] = LOAD(line_of(line, min(tile + l, other_count() - 1u)), kIn);
}

void add_others(T scores[kDown][kTile], T slopes[kDown][kTile], Lines others, uint tile, uint feature) {
  T lse[kTile], delta[kTile];
  if (!kRowsAreQueries) of_others(operands[kLse], tile, lse);
  if (kFunction == kKeyGrad) of_others(operands[kDelta], tile, delta);
  if (n[4] > 0u) share(others, tile, feature, min(kFeatures, n[4] - feature));
  OVER_TILE for (uint l = 0u; l < kTile; ++l) {
    T weights[kDown];
    [[unroll]] for (uint a = 0u; a < kDown; ++a)
      weights[a] = weight_of(a, scores[a][l], slopes[a][l], lse[l], delta[l]);
    if (n[4] == 0u) continue;
    [[unroll]] for (uint b = 0u; b < kParts; ++b)
      [[unroll]] for (uint m = 0u; m < kPart; ++m) {
        const T each = chunk[l * kChunk + feature_of(b, m)];
        [[unroll]] for (uint a = 0u; a < kDown; ++a) totals[a][b][m] += weights[a] * each;
      }
  }
}
