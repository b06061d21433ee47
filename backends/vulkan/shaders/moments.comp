// What a normalisation needs to know of each channel of x (pieces, channels, rest), in parts that are then joined: how
// many elements, their mean, the sum of their squared distances from it, and, with a cotangent, its mean and the sum of
// the products of both distances.
//
// kFunction 0: parts of x, 1: of x and the cotangent. at: parts, x, cotangent. n: pieces, channels, rest, parts of a
// channel, multiplier and shift of rest. An invocation makes a part of elements `parts` apart, so that neighbours read
// neighbours; with kOption 1 of whole pieces `parts` apart, whose rest it reads pair by pair.
// kFunction 2: joins parts. at: parts, parts so far. n: 0, channels, 0, parts of a channel, parts so far.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moments.glsl"

struct Firsts {
  T x, g;
};
// Distances from a first element are as good as from 0, or far better.
void take(inout Moments m, Firsts first, T x, T g) {
  const T dx = x - first.x, dg = g - first.g;
  m.count += T(1);
  m.mean += dx;
  m.squares += dx * dx;
  m.g_mean += dg;
  m.products += dx * dg;
}

Moments part_of(uint channel, uint part) {
  const uint count = n[0] * n[2], parts = n[3];
  Moments m = Moments(T(0), T(0), T(0), T(0), T(0));
  Firsts first;
  const uint first_piece = kOption == 1u ? part : divided(part, n[4], n[5]);
  const int first_offset = int((first_piece * n[1] + channel) * n[2] + (kOption == 1u ? 0u : part - first_piece * n[2]));
  first.x = LOAD(element(at[1], first_offset, kIn), kIn);
  first.g = T(0);
  if (kFunction == 1u) first.g = LOAD(element(at[2], first_offset, kIn), kIn);
  if (kOption == 1u) {
    for (uint piece = part; piece < n[0]; piece += parts)
      for (uint k = 0u; k < n[2]; k += 2u) {
        const int offset = int((piece * n[1] + channel) * n[2] + k);
        T x, x_next, g = T(0), g_next = T(0);
        load_pair(element(at[1], offset, kIn), x, x_next);
        if (kFunction == 1u) load_pair(element(at[2], offset, kIn), g, g_next);
        take(m, first, x, g);
        take(m, first, x_next, g_next);
      }
  } else {
  for (uint i = part; i < count; i += parts) {
    const uint piece = divided(i, n[4], n[5]);
    const int offset = int((piece * n[1] + channel) * n[2] + i - piece * n[2]);
    const T x = LOAD(element(at[1], offset, kIn), kIn);
    T g = T(0);
    if (kFunction == 1u) g = LOAD(element(at[2], offset, kIn), kIn);
    take(m, first, x, g);
  }
  }
  const T scale = T(1) / m.count, x_mean = m.mean * scale, g_mean = m.g_mean * scale;
  m.squares -= m.mean * x_mean;
  m.products -= m.mean * g_mean;
  m.mean = first.x + x_mean;
  m.g_mean = first.g + g_mean;
  return m;
}

Moments joined_of(uint channel, uint part) {
  Moments m = load_moments(at[1], channel * n[4] + part);
  for (uint i = part + n[3]; i < n[4]; i += n[3]) m = joined(m, load_moments(at[1], channel * n[4] + i));
  return m;
}

void main() {
  receive();
  for (uint i = gl_GlobalInvocationID.x; i < n[1] * n[3]; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    const uint channel = i / n[3], part = i % n[3];
    if (kFunction == 2u)
      store_moments(at[0], i, joined_of(channel, part));
    else
      store_moments(at[0], i, part_of(channel, part));
  }
}
