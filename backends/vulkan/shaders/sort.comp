// Positions that sort lines, stably: runs of 8 by insertion, then merges of neighbouring runs, in which each element
// finds its place by a binary search of the other run. NaN counts as largest.
//
// at: result, x, positions so far (int32, contiguous). n: lines, length, run length (0: make the first runs), stride of
// x along a line, stride of the result along a line, rank of the lines, 1: the result is of the lines' strides, not
// contiguous. dims: rows with strides of the result and of x. kOption 1: descending. kOut: of the positions.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "class.glsl"

const uint kRun = 8;

bool before(T x, T y) {
  if (kOption == 1u) {
    const T swap = x;
    x = y;
    y = swap;
  }
  return !is_nan(x) && (is_nan(y) || below(x, y));
}

uint64_t x_line, result_line;
uint length_, stride_;

T key(int position) { return LOAD(element(x_line, position * int(n[3]), kIn), kIn); }
void put(uint place, int position) {
  store(element(result_line, int(place * stride_), kOut), kOut, int64_t(position));
}

void insert_run(uint begin) {
  int run[kRun];
  const uint size = min(kRun, length_ - begin);
  for (uint k = 0u; k < size; ++k) {
    const int position = int(begin + k);
    uint to = k;
    for (; to > 0u && before(key(position), key(run[to - 1u])); --to) run[to] = run[to - 1u];
    run[to] = position;
  }
  for (uint k = 0u; k < size; ++k) put(begin + k, run[k]);
}

void merge(uint place, uint64_t positions, uint width) {
  const uint left = place / (2u * width) * 2u * width, middle = min(left + width, length_);
  const uint right = min(middle + width, length_);
  const bool of_left = place < middle;
  const int position = int(Ref32(positions + uint64_t(place) * 4ul).v);
  const T own = key(position);
  uint low = of_left ? middle : left, high = of_left ? right : middle;
  while (low < high) {  // of equal elements the left run's come first
    const uint half_way = (low + high) / 2u;
    const T other = key(int(Ref32(positions + uint64_t(half_way) * 4ul).v));
    if (of_left ? before(other, own) : !before(own, other))
      low = half_way + 1u;
    else
      high = half_way;
  }
  put(of_left ? place + low - middle : place - middle + low, position);
}

void main() {
  receive();
  length_ = n[1];
  stride_ = n[6] != 0u ? n[4] : 1u;
  const uint pieces = n[2] == 0u ? (length_ + kRun - 1u) / kRun : length_;
  for (uint i = gl_GlobalInvocationID.x; i < n[0] * pieces; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    const uint line = i / pieces;
    int offsets[4];
    offsets_of(line, dims, n[5], 2u, offsets);
    x_line = element(at[1], offsets[1], kIn);
    result_line = element(at[0], n[6] != 0u ? offsets[0] : int(line * length_), kOut);
    if (n[2] == 0u)
      insert_run(i % pieces * kRun);
    else
      merge(i % pieces, at[2] + uint64_t(line) * uint64_t(length_) * 4ul, n[2]);
  }
}
