// take_along_axis and put_along_axis of contiguous tensors of lines (outer, length, inner), and indices of lines of
// another length.
//
// at: result, x or values, indices. n: invocations, length, length of the indices, inner; 4 to 7: multipliers and shifts of
// inner and of the indices' length; number of the axis. kOut: of the indices. kFunction 0: takes, an invocation per index;
// 1: puts, an invocation per line, so that the last of those at one place stays; 2: adds, in their order.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "class.glsl"
#include "fault.glsl"

const uint kTake = 0, kPut = 1, kAdd = 2;

// The place of an index along its line.
int place_of(uint i) {
  const int64_t size = int64_t(n[1]);
  int64_t found = int64_of(word_at(element(at[2], int(i), kOut), kOut), kOut);
  if (found < -size || found >= size) {
    report(kIndexRange, found, n[8], n[1]);
    found = 0l;
  }
  return int(found < 0l ? found + size : found);
}

void put(uint64_t to, uint64_t from) {
  if (kFunction == kPut) {
    move(to, from, kIn);
  } else {
    const T total = add(LOAD(to, kIn), LOAD(from, kIn));
    if (kIn == kBool)
      store(to, kIn, !is_zero(total));
    else
      store(to, kIn, total);
  }
}

void main() {
  receive();
  const int inner = int(n[3]), length = int(n[1]), indices = int(n[2]);
  for (uint i = gl_GlobalInvocationID.x; i < n[0]; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    const uint row = divided(i, n[4], n[5]);
    const int beside = int(i - row * n[3]);
    if (kFunction == kTake) {
      const uint outer = divided(row, n[6], n[7]);
      const int from = (int(outer) * length + place_of(i)) * inner + beside;
      move(element(at[0], int(i), kIn), element(at[1], from, kIn), kIn);
    } else {
      for (int k = 0; k < indices; ++k) {
        const int from = (int(row) * indices + k) * inner + beside;
        put(element(at[0], (int(row) * length + place_of(uint(from))) * inner + beside, kIn), element(at[1], from, kIn));
      }
    }
  }
}
