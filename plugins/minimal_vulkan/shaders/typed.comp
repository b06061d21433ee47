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

// An item per result. The first loop: results, with the operands out and x; the second one: the n[0] elements of each.
// n[1], n[2]: the bits of what the fold begins with.
void fold(int64_t i) {
  int64_t result[4], o[4];
  offsets_of(i, 0u, result);
  TYPE total = scalar_of(call.n[1], call.n[2], kOut);
  for (int64_t k = 0l; k < call.n[0]; ++k) {
    offsets_of(k, 1u, o);
    total = join(total, load(call.at[1] + result[1] + o[0]));
  }
  store(call.at[0] + result[0], total);
}

// Along an axis, n: length of a line, elements between two of a line. Where the item's line begins:
int64_t line_start(int64_t i) { return i / call.n[1] * call.n[0] * call.n[1] + i % call.n[1]; }

void running(int64_t i) {
  const int64_t first = line_start(i);
  TYPE total = load(element(call.at[1], first, kIn));
  store(element(call.at[0], first, kOut), total);
  for (int64_t k = 1l; k < call.n[0]; ++k) {
    total = join(total, load(element(call.at[1], first + k * call.n[1], kIn)));
    store(element(call.at[0], first + k * call.n[1], kOut), total);
  }
}

void arg_extreme(int64_t i) {
  const int64_t first = line_start(i);
  TYPE best = load(element(call.at[1], first, kIn));
  int64_t place = 0l;
  for (int64_t k = 1l; k < call.n[0]; ++k) {  // strictly better, or the first NaN
    const TYPE next = load(element(call.at[1], first + k * call.n[1], kIn));
    if (best == best && join(best, next) != best) {
      best = next;
      place = k;
    }
  }
  Ref64(element(call.at[0], i, kInt64)).v = uint64_t(place);
}

// A merge sort from below, which is stable. Positions lie in the result and in at[2] in turn. n[2]: 1: descending.
void sort_line(int64_t i) {
  const int64_t first = line_start(i), length = call.n[0], inner = call.n[1];
  const uint64_t line = element(call.at[1], first, kIn), result = element(call.at[0], first, kInt64);
  uint64_t from = result, to = element(call.at[2], first, kInt64);
  for (int64_t k = 0l; k < length; ++k) Ref64(element(from, k * inner, kInt64)).v = uint64_t(k);
  for (int64_t width = 1l; width < length; width *= 2l) {
    for (int64_t begin = 0l; begin < length; begin += 2l * width) {
      const int64_t middle = min(begin + width, length), end = min(begin + 2l * width, length);
      int64_t left = begin, right = middle;
      for (int64_t k = begin; k < end; ++k) {
        bool second = left == middle;
        if (!second && right < end) {
          const TYPE a = load(element(line, int64_t(Ref64(element(from, left * inner, kInt64)).v) * inner, kIn));
          const TYPE b = load(element(line, int64_t(Ref64(element(from, right * inner, kInt64)).v) * inner, kIn));
          second = call.n[2] != 0l ? before(a, b) : before(b, a);
        }
        Ref64(element(to, k * inner, kInt64)).v = Ref64(element(from, (second ? right : left) * inner, kInt64)).v;
        if (second) ++right; else ++left;
      }
    }
    const uint64_t sorted = to;
    to = from;
    from = sorted;
  }
  for (int64_t k = 0l; from != result && k < length; ++k)
    Ref64(element(result, k * inner, kInt64)).v = Ref64(element(from, k * inner, kInt64)).v;
}

// An item per element of the result (stack..., rows, columns). n: rows, depth, columns.
void product(int64_t i) {
  const int64_t depth = call.n[1], columns = call.n[2], column = i % columns, row = i / columns % call.n[0];
  int64_t o[4];
  offsets_of(i / columns / call.n[0], 0u, o);
  TYPE sum = TYPE(0);
  for (int64_t d = 0l; d < depth; ++d)
    sum = join_second(sum, join(load(element(call.at[1] + o[1], row * depth + d, kIn)),
                                load(element(call.at[2] + o[2], d * columns + column, kIn))));
  store(element(call.at[0] + o[0], row * columns + column, kOut), sum);
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

// As put_selected in moves.comp, with the sum of what is there and what comes.
void add_selected(int64_t i) {
  int64_t joint[4], kept[4];
  offsets_of(i, 1u, kept);
  for (int64_t j = 0l; j < call.n[0]; ++j) {
    offsets_of(j, 0u, joint);
    const uint64_t to = call.at[0] + int64_t(Ref64(element(call.at[2], j, kInt64)).v) + kept[1];
    store(to, join(load(to), load(call.at[1] + joint[0] + kept[0])));
  }
}

void main() {
  switch (kKernel) { MINIMAL_TYPED_KERNELS(MINIMAL_CASE) }
}
