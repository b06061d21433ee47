// Attention and its gradients by a subgroup per block of rows, straight from memory; see attention.glsl,
// blocks.glsl. Of the tile's others a lane reads kPerLane, or a part of each, and all have it by broadcasts.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "blocks.glsl"

const uint kPerLane = 2, kTile = kPerLane * kLanes, kParts = kAcross, kPart = kLanes;

#define OVER_TILE [[dont_unroll]]
#include "attention.glsl"

uint lane() { return gl_SubgroupInvocationID; }
uint all_blocks() { return all_subgroups(); }

// The tile's other number `c` of the lane; beyond the last one that again.
uint other_of(uint tile, uint c) { return min(tile + c * kLanes + lane(), other_count() - 1u); }

void load_features(uint64_t line, Lines lines, uint k, out T feature, out T next) {
  if (kProductPairs)
    load_pair(element(line, int(k), kIn), feature, next);
  else
    feature = LOAD(element(line, int(k) * lines.along, kIn), kIn);
}

void add_products(inout T products[kDown][kTile], Lines rows, Lines others, uint inner, uint row, uint tile) {
  uint64_t mine_at[kDown], theirs_at[kPerLane];
  [[unroll]] for (uint a = 0u; a < kDown; ++a) mine_at[a] = line_of(rows, min(row_of(row, a), row_count() - 1u));
  [[unroll]] for (uint c = 0u; c < kPerLane; ++c) theirs_at[c] = line_of(others, other_of(tile, c));
  for (uint k = 0u; k < inner; k += kWidth) {
    T mine[kDown][2], theirs[kPerLane][2];
    [[unroll]] for (uint a = 0u; a < kDown; ++a) load_features(mine_at[a], rows, k, mine[a][0], mine[a][1]);
    [[unroll]] for (uint c = 0u; c < kPerLane; ++c) load_features(theirs_at[c], others, k, theirs[c][0], theirs[c][1]);
    [[unroll]] for (uint e = 0u; e < kWidth; ++e)
      [[unroll]] for (uint c = 0u; c < kPerLane; ++c)
        [[unroll]] for (uint l = 0u; l < kLanes; ++l) {
          const T each = of_lane(theirs[c][e], l);
          [[unroll]] for (uint a = 0u; a < kDown; ++a) products[a][c * kLanes + l] += mine[a][e] * each;
        }
  }
}

void of_others(Lines line, uint tile, out T elements[kTile]) {
  [[unroll]] for (uint c = 0u; c < kPerLane; ++c) {
    const T own = LOAD(line_of(line, other_of(tile, c)), kIn);
    [[unroll]] for (uint l = 0u; l < kLanes; ++l) elements[c * kLanes + l] = of_lane(own, l);
  }
}

// Two neighbours that a lane has read stand in two parts.
uint feature_of(uint part, uint m) {
  return kSumPairs ? part / 2u * 2u * kLanes + 2u * m + part % 2u : part * kLanes + m;
}

void add_others(T scores[kDown][kTile], T slopes[kDown][kTile], Lines others, uint tile, uint feature) {
  const uint count = min(kTile, other_count() - tile);
  T lse[kTile], delta[kTile];
  if (!kRowsAreQueries) of_others(operands[kLse], tile, lse);
  if (kFunction == kKeyGrad) of_others(operands[kDelta], tile, delta);
  OVER_TILE for (uint l = 0u; l < count; ++l) {
    T weights[kDown];
    [[unroll]] for (uint a = 0u; a < kDown; ++a)
      weights[a] = weight_of(a, scores[a][l], slopes[a][l], lse[l], delta[l]);
    if (n[4] == 0u) continue;
    const uint64_t other = line_of(others, tile + l);
    T theirs[kAcross];
    [[unroll]] for (uint b = 0u; b < kAcross; b += kSumPairs ? 2u : 1u) {
      const uint f = feature + feature_of(b, lane());
      if (kSumPairs)
        load_pair(element(other, int(min(f, n[4] - 2u)), kIn), theirs[b], theirs[b + 1u]);
      else
        theirs[b] = LOAD(element(other, int(min(f, n[4] - 1u)) * others.along, kIn), kIn);
    }
    [[unroll]] for (uint b = 0u; b < kAcross; ++b)
      [[unroll]] for (uint m = 0u; m < kLanes; ++m) {
        const T each = of_lane(theirs[b], m);
        [[unroll]] for (uint a = 0u; a < kDown; ++a) totals[a][b][m] += weights[a] * each;
      }
  }
}
