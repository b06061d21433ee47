// Every op of the registry that takes one or two elements of DTYPE: the functions that codegen wrote, of which the
// specialisation constants leave one. Any strides, broadcasting included.
//
// at: result, x, y. n: as in loop.glsl. kFunction: the number in a list. kOption: which list, what is refused of y times
// 8, and what loop.glsl says; what may be refused is never paired.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "loop.glsl"
#include "fault.glsl"

#define LOAD JOIN(load_, DTYPE)
#define BACKPLANE_UNARY(op, function, number) case number: PUT(function(x)); break;
#define BACKPLANE_BINARY(op, function, number) case number: PUT(function(x, y)); break;

// As kernels/elementwise.cpp counts them.
const uint kUnarySame = 0, kBinarySame = 1, kUnaryBool = 2, kBinaryBool = 3, kUnaryReal = 4, kBinaryComplex = 5;
const uint kList = kOption & 7u, kRefused = kOption >> 3 & 3u;
const bool kHasY = (kList & 1u) != 0u;

#ifdef BACKPLANE_INTEGER
void refuse(TYPE y) {
  if (kRefused == kDivisorZero && y == TYPE(0)) report(kDivisorZero, 0l, 0u, 0u);
  if (kRefused == kNegativeExponent && y < TYPE(0)) report(kNegativeExponent, int64_t(y), 0u, 0u);
}
#endif

// BACKPLANE_NARROW: elements that are read are of 32 bits at most, so that two may be one word.
#ifdef BACKPLANE_NARROW
const uint kEach = kPaired ? 2u : 1u;
#define PUT(value) \
  if (kPaired) \
    pair |= word(value, kOut) << (e * (8u << shift_of(kOut))); \
  else \
    store(to, kOut, value);
#else
const uint kEach = 1u;
#define PUT(value) store(to, kOut, value);
#endif

void main() {
  receive();
  const uint count = n[0];
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    int offsets[4];
    loop_offsets(i, kHasY ? 3u : 2u, offsets);
    const uint64_t to = element(at[0], offsets[0], kOut);
    uint64_t xs = 0ul, ys = 0ul, pair = 0ul;
    if (kPaired) {
      xs = pair_at(i, 1u, kIn);
      if (kHasY) ys = pair_at(i, 2u, kIn);
    }
    for (uint e = 0u; e < kEach; ++e) {
      TYPE x, y;
#ifdef BACKPLANE_NARROW
      if (kPaired) {
        x = JOIN(value_, DTYPE)(half_of(xs, e, 1u, kIn), kIn);
        y = JOIN(value_, DTYPE)(half_of(ys, e, 2u, kIn), kIn);
      } else
#endif
      {
        x = LOAD(element(at[1], offsets[1], kIn), kIn);
        y = x;
        if (kHasY) y = LOAD(element(at[2], offsets[2], kIn), kIn);
#ifdef BACKPLANE_INTEGER
        if (kRefused != 0u) refuse(y);
#endif
      }
      if (kList == kUnarySame) {
        switch (kFunction) { UNARY_SAME(BACKPLANE_UNARY) }
      } else if (kList == kBinarySame) {
        switch (kFunction) { BINARY_SAME(BACKPLANE_BINARY) }
#ifdef UNARY_BOOL
      } else if (kList == kUnaryBool) {
        switch (kFunction) { UNARY_BOOL(BACKPLANE_UNARY) }
      } else if (kList == kBinaryBool) {
        switch (kFunction) { BINARY_BOOL(BACKPLANE_BINARY) }
#endif
#ifdef UNARY_REAL
      } else if (kList == kUnaryReal) {
        switch (kFunction) { UNARY_REAL(BACKPLANE_UNARY) }
#endif
#ifdef BINARY_COMPLEX
      } else if (kList == kBinaryComplex) {
        switch (kFunction) { BINARY_COMPLEX(BACKPLANE_BINARY) }
#endif
      }
    }
    if (kPaired) store_pair_at(i, kOut, pair);
  }
}
