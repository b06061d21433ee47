// Kernels that compute in one dtype, DTYPE, whose scalars GLSL has as TYPE. Half floats are computed in float32.
//
// UNARY, BINARY, COMPARE: the lists of the registry's functions from one or two of TYPE to TYPE, and to bool. at: the
// result, then the operands. n: what the kernel says.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arguments.glsl"
#ifndef HAS_FLOAT64
#define BP_SCALAR_WITHOUT_FLOAT64
#endif
#include "backplane/scalar.glsl"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

// An element of DTYPE from its bits.
TYPE scalar_of(uint64_t low, uint64_t high, uint dtype) {
#if defined(IS_FLOAT32)
  return dtype == kFloat16    ? bp_float32_of_float16(uint(low))
         : dtype == kBfloat16 ? bp_float32_of_bfloat16(uint(low))
                              : uintBitsToFloat(uint(low));
#elif defined(IS_FLOAT64)
  return packDouble2x32(unpackUint2x32(low));
#elif defined(IS_COMPLEX64)
  return uintBitsToFloat(unpackUint2x32(low));
#elif defined(IS_COMPLEX128)
  return dvec2(packDouble2x32(unpackUint2x32(low)), packDouble2x32(unpackUint2x32(high)));
#elif defined(IS_BOOL)
  return low != 0ul;
#else
  return TYPE(low);
#endif
}
TYPE load(uint64_t a) { return scalar_of(word_at(a, kIn), kIn == kComplex128 ? Ref64(a + 8ul).v : 0ul, kIn); }

#define STORE_WHOLE(type) \
  void store(uint64_t a, type v) { put_word(a, kOut, uint64_t(v)); }
STORE_WHOLE(int8_t) STORE_WHOLE(int16_t) STORE_WHOLE(int) STORE_WHOLE(int64_t)
STORE_WHOLE(uint8_t) STORE_WHOLE(uint16_t) STORE_WHOLE(uint) STORE_WHOLE(uint64_t)
void store(uint64_t a, bool v) { Ref8(a).v = uint8_t(v ? 1 : 0); }
void store(uint64_t a, float v) {
  put_word(a, kOut,
           kOut == kFloat16    ? uint64_t(bp_float16_of_float32(v))
           : kOut == kBfloat16 ? uint64_t(bp_bfloat16_of_float32(v))
                               : uint64_t(floatBitsToUint(v)));
}
void store(uint64_t a, vec2 v) { Ref64(a).v = packUint2x32(floatBitsToUint(v)); }
#ifdef HAS_FLOAT64
void store(uint64_t a, double v) { Ref64(a).v = packUint2x32(unpackDouble2x32(v)); }
void store(uint64_t a, dvec2 v) {
  store(a, v.x);
  store(a + 8ul, v.y);
}
#endif

#define UNARY_CASE(op, function, number) case number: return function(x);
#define BINARY_CASE(op, function, number) case number: return function(x, y);
TYPE join(TYPE x, TYPE y) {
  switch (kFunction) { BINARY(BINARY_CASE) }
  return x;
}
TYPE join_second(TYPE x, TYPE y) {
  switch (kSecond) { BINARY(BINARY_CASE) }
  return x;
}
TYPE unary_of(TYPE x) {
  switch (kFunction) { UNARY(UNARY_CASE) }
  return x;
}
bool compared(TYPE x, TYPE y) {
#ifdef COMPARE
  switch (kFunction) { COMPARE(BINARY_CASE) }
#endif
  return false;
}
// Whether x is nearer to the front of ascending order than y; a NaN counts as the largest.
bool before(TYPE x, TYPE y) {
#if defined(IS_BOOL)
  return !x && y;
#elif defined(IS_COMPLEX)
  return false;
#else
  return x < y || (x == x && y != y);
#endif
}

void unary(int64_t i) {
  int64_t o[4];
  offsets_of(i, 0u, o);
  store(call.at[0] + o[0], unary_of(load(call.at[1] + o[1])));
}

// From a complex number to a real one: the absolute value.
void real_of(int64_t i) {
#ifdef IS_COMPLEX
  int64_t o[4];
  offsets_of(i, 0u, o);
  store(call.at[0] + o[0], JOIN(bp_abs_, DTYPE)(load(call.at[1] + o[1])));
#endif
}

// n, of integers: 1: a y of 0 is bad data; 2: a y below 0 is.
void binary(int64_t i) {
  int64_t o[4];
  offsets_of(i, 0u, o);
  const TYPE y = load(call.at[2] + o[2]);
#ifdef IS_INTEGER
  if ((call.n[0] == 1l && y == TYPE(0)) || (call.n[0] == 2l && y < TYPE(0))) report();
#endif
  store(call.at[0] + o[0], join(load(call.at[1] + o[1]), y));
}

void compare(int64_t i) {
  int64_t o[4];
  offsets_of(i, 0u, o);
  store(call.at[0] + o[0], compared(load(call.at[1] + o[1]), load(call.at[2] + o[2])));
}

void complex_of(int64_t i) {
#if defined(IS_FLOAT32) || defined(IS_FLOAT64)
  int64_t o[4];
  offsets_of(i, 0u, o);
  store(call.at[0] + o[0], JOIN(bp_complex_from_, DTYPE)(load(call.at[1] + o[1]), load(call.at[2] + o[2])));
#endif
}

#define CAST_CASE(number, dtype) \
  case number: store(to, JOIN(JOIN(bp_cast_, DTYPE), _##dtype)(x)); break;
void store_cast(uint64_t to, TYPE x) {
  switch (kOut) {
    CAST_CASE(0, bool) CAST_CASE(1, int8) CAST_CASE(2, int16) CAST_CASE(3, int32) CAST_CASE(4, int64)
    CAST_CASE(5, uint8) CAST_CASE(6, uint16) CAST_CASE(7, uint32) CAST_CASE(8, uint64)
    CAST_CASE(9, float32) CAST_CASE(10, float32) CAST_CASE(11, float32) CAST_CASE(13, complex64)
#ifdef HAS_FLOAT64
    CAST_CASE(12, float64) CAST_CASE(14, complex128)
#endif
  }
}

void convert(int64_t i) {
  int64_t o[4];
  offsets_of(i, 0u, o);
  store_cast(call.at[0] + o[0], load(call.at[1] + o[1]));
}

// n: the bits of the start, and of the step.
void count(int64_t i) {
#ifndef IS_BOOL
  const TYPE start = scalar_of(call.n[0], call.n[1], kIn), by = scalar_of(call.n[2], call.n[3], kIn);
#ifdef IS_COMPLEX
  precise const TYPE value = start + REAL(i) * by;
#else
  precise const TYPE value = start + TYPE(i) * by;
#endif
  store_cast(element(call.at[0], i, kOut), value);
#endif
}

// An item per segment of a result. The first loop: results, with the operands out and x; the second one: the n[0]
// elements of each. n[1], n[2]: segments of a result, elements of a segment; of one segment its total is the result, else
// the totals lie one after the other. n[3], n[4]: the bits of what the fold begins with.
void fold(int64_t i) {
  const int64_t segments = call.n[1], begin = i % segments * call.n[2], end = min(begin + call.n[2], call.n[0]);
  int64_t result[4], o[4];
  offsets_of(i / segments, 0u, result);
  TYPE total = scalar_of(call.n[3], call.n[4], kOut);
  for (int64_t k = begin; k < end; ++k) {
    offsets_of(k, 1u, o);
    total = join(total, load(call.at[1] + result[1] + o[0]));
  }
  store(segments > 1l ? element(call.at[0], i, kOut) : call.at[0] + result[0], total);
}

// Along an axis, n: length of a line, elements between two of a line; begin and end of the part of the line that this
// launch goes through, after those before it. Where the item's line begins:
int64_t line_start(int64_t i) { return i / call.n[1] * call.n[0] * call.n[1] + i % call.n[1]; }

void running(int64_t i) {
  const int64_t first = line_start(i), begin = call.n[2];
  TYPE carry, total;
  if (begin > 0l) carry = load(element(call.at[0], first + (begin - 1l) * call.n[1], kOut));
  for (int64_t k = begin; k < call.n[3]; ++k) {
    const TYPE next = load(element(call.at[1], first + k * call.n[1], kIn));
    total = k == begin ? next : join(total, next);
    store(element(call.at[0], first + k * call.n[1], kOut), begin > 0l ? join(carry, total) : total);
  }
}

void arg_extreme(int64_t i) {
  const int64_t first = line_start(i);
  Ref64 result = Ref64(element(call.at[0], i, kInt64));
  int64_t place = call.n[2] == 0l ? 0l : int64_t(result.v);
  TYPE best = load(element(call.at[1], first + place * call.n[1], kIn));
  for (int64_t k = call.n[2]; k < call.n[3]; ++k) {  // strictly better, or the first NaN
    const TYPE next = load(element(call.at[1], first + k * call.n[1], kIn));
    if (best == best && join(best, next) != best) {
      best = next;
      place = k;
    }
  }
  result.v = uint64_t(place);
}

// Whether x stands before y in the order asked for. n[2]: 1: descending.
bool goes_first(TYPE x, TYPE y) { return call.n[2] != 0l ? before(y, x) : before(x, y); }

// A pass of a stable merge sort, an item per element: two sorted runs of n[3] elements become one. An element goes as far
// behind the start of its own run as elements of the other run stand before it. at: sorted positions, x, those before.
void merge(int64_t i) {
  const int64_t length = call.n[0], inner = call.n[1], width = call.n[3], k = i / inner % length, first = i - k * inner;
  const int64_t begin = k - k % (2l * width), middle = min(begin + width, length), end = min(middle + width, length);
  const bool is_left = k < middle;
#define POSITION(k) (width == 1l ? (k) : int64_t(Ref64(element(call.at[2], first + (k) * inner, kInt64)).v))
#define KEY(position) load(element(call.at[1], first + (position) * inner, kIn))
  const int64_t position = POSITION(k), other = is_left ? middle : begin;
  const TYPE own = KEY(position);
  int64_t low = other, high = is_left ? end : middle;
  while (low < high) {
    const int64_t split = (low + high) / 2l;
    const TYPE theirs = KEY(POSITION(split));
    const bool stands_before = is_left ? goes_first(theirs, own) : !goes_first(own, theirs);
    if (stands_before)
      low = split + 1l;
    else
      high = split;
  }
  const int64_t to = begin + (k - (is_left ? begin : middle)) + (low - other);
  Ref64(element(call.at[0], first + to * inner, kInt64)).v = uint64_t(position);
}

// An item per element of the result (stack..., rows, columns). n: rows, depth, columns; begin and end of the part of the
// depth that this launch adds to the result.
void product(int64_t i) {
  const int64_t depth = call.n[1], columns = call.n[2], column = i % columns, row = i / columns % call.n[0];
  int64_t o[4];
  offsets_of(i / columns / call.n[0], 0u, o);
  const uint64_t result = element(call.at[0] + o[0], row * columns + column, kOut);
  TYPE sum = TYPE(0);
  for (int64_t d = call.n[3]; d < call.n[4]; ++d)
    sum = join_second(sum, join(load(element(call.at[1] + o[1], row * depth + d, kIn)),
                                load(element(call.at[2] + o[2], d * columns + column, kIn))));
  store(result, call.n[3] > 0l ? join_second(load(result), sum) : sum);
}

// Adds to the byte offset of each joint position what the index of one axis asks for. n: size and stride of the axis.
void add_positions(int64_t i) {
#ifdef IS_INTEGER
  int64_t o[4];
  offsets_of(i, 0u, o);
  const TYPE value = load(call.at[1] + o[1]);
  const bool below = value < TYPE(0);
  int64_t place = int64_t(value) + (below ? call.n[0] : 0l);
  if ((!below && uint64_t(value) >= uint64_t(call.n[0])) || place < 0l) {
    report();
    place = 0l;
  }
  Ref64 to = Ref64(call.at[0] + o[0]);
  to.v += uint64_t(place * call.n[1]);
#endif
}

// As put_selected in moves.comp, but adds to the element.
void add_selected(int64_t i) {
  int64_t joint[4], kept[4];
  offsets_of(i, 1u, kept);
  for (int64_t j = call.n[0]; j < call.n[1]; ++j) {
    offsets_of(j, 0u, joint);
    const uint64_t to = call.at[0] + int64_t(Ref64(element(call.at[2], j, kInt64)).v) + kept[1];
    store(to, join(load(to), load(call.at[1] + joint[0] + kept[0])));
  }
}

void main() {
  switch (kKernel) { MINIMAL_TYPED_KERNELS(MINIMAL_CASE) }
}
