// Kernels that compute in one dtype, DTYPE, whose scalars CUDA has as TYPE. Half floats are computed in float32.
//
// UNARY, BINARY, COMPARE: the lists of the registry's functions from one or two of TYPE to TYPE, and to bool. at: the
// result, then the operands. n: what the kernel says.
#include "backplane/scalar.cuh"
#include "device/arguments.cuh"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

namespace minimal {

using T = TYPE;
constexpr uint32_t kFloat16 = 9, kBfloat16 = 10;  // dtypes by their number in the contract
constexpr int64_t kItem = sizeof(T);

__device__ T load(const char* at, uint32_t dtype) {
#ifdef IS_FLOAT32
  if (dtype == kFloat16) return bp_float32_of_float16(*reinterpret_cast<const uint16_t*>(at));
  if (dtype == kBfloat16) return bp_float32_of_bfloat16(*reinterpret_cast<const uint16_t*>(at));
#endif
  return *reinterpret_cast<const T*>(at);
}
template <class V>
__device__ void store(char* at, uint32_t, V value) {
  *reinterpret_cast<V*>(at) = value;
}
__device__ void store(char* at, uint32_t dtype, float value) {
  if (dtype == kFloat16)
    *reinterpret_cast<uint16_t*>(at) = static_cast<uint16_t>(bp_float16_of_float32(value));
  else if (dtype == kBfloat16)
    *reinterpret_cast<uint16_t*>(at) = static_cast<uint16_t>(bp_bfloat16_of_float32(value));
  else
    *reinterpret_cast<float*>(at) = value;
}
// Bytes from one element to the next: half floats are half of float32's.
__device__ int64_t item_of(uint32_t dtype) { return dtype == kFloat16 || dtype == kBfloat16 ? 2 : kItem; }

#define UNARY_CASE(op, function, number) \
  case number:                           \
    return function(x);
#define BINARY_CASE(op, function, number) \
  case number:                            \
    return function(x, y);
__device__ T unary_of(uint32_t function, T x) {
  switch (function) { UNARY(UNARY_CASE) }
  return x;
}
__device__ T join(uint32_t function, T x, T y) {
  switch (function) { BINARY(BINARY_CASE) }
  return x;
}
#ifdef COMPARE
__device__ bool compared(uint32_t function, T x, T y) {
  switch (function) { COMPARE(BINARY_CASE) }
  return false;
}
#else
__device__ bool compared(uint32_t, T, T) { return false; }
#endif

__device__ void unary_item(const Arguments& call, int64_t i) {
  const Offsets o = offsets_of(call, i, 0);
  store(operand(call, 0, o.of[0]), call.out, unary_of(call.function, load(operand(call, 1, o.of[1]), call.in)));
}

// From a complex number to a real one: the absolute value.
__device__ void real_of_item(const Arguments& call, int64_t i) {
#ifdef IS_COMPLEX
  const Offsets o = offsets_of(call, i, 0);
  store(operand(call, 0, o.of[0]), call.out, JOIN(bp_abs_, DTYPE)(load(operand(call, 1, o.of[1]), call.in)));
#endif
}

// n, of integers: 1: a y of 0 is bad data; 2: a y below 0 is.
__device__ void binary_item(const Arguments& call, int64_t i) {
  const Offsets o = offsets_of(call, i, 0);
  const T y = load(operand(call, 2, o.of[2]), call.in);
#ifdef IS_INTEGER
  if ((call.n[0] == 1 && y == 0) || (call.n[0] == 2 && y < 0)) report(call);
#endif
  store(operand(call, 0, o.of[0]), call.out, join(call.function, load(operand(call, 1, o.of[1]), call.in), y));
}

__device__ void compare_item(const Arguments& call, int64_t i) {
  const Offsets o = offsets_of(call, i, 0);
  const T x = load(operand(call, 1, o.of[1]), call.in), y = load(operand(call, 2, o.of[2]), call.in);
  store(operand(call, 0, o.of[0]), call.out, compared(call.function, x, y));
}

__device__ void complex_of_item(const Arguments& call, int64_t i) {
#if defined(IS_FLOAT32) || defined(IS_FLOAT64)
  const Offsets o = offsets_of(call, i, 0);
  const T re = load(operand(call, 1, o.of[1]), call.in), im = load(operand(call, 2, o.of[2]), call.in);
  store(operand(call, 0, o.of[0]), call.out, JOIN(bp_complex_from_, DTYPE)(re, im));
#endif
}

#define CAST_CASE(number, dtype)                              \
  case number:                                                \
    store(to, out, JOIN(JOIN(bp_cast_, DTYPE), _##dtype)(x)); \
    break;
__device__ void store_cast(char* to, uint32_t out, T x) {
  switch (out) {
    CAST_CASE(0, bool)
    CAST_CASE(1, int8)
    CAST_CASE(2, int16)
    CAST_CASE(3, int32)
    CAST_CASE(4, int64)
    CAST_CASE(5, uint8)
    CAST_CASE(6, uint16)
    CAST_CASE(7, uint32)
    CAST_CASE(8, uint64)
    CAST_CASE(9, float32)
    CAST_CASE(10, float32)
    CAST_CASE(11, float32)
    CAST_CASE(12, float64)
    CAST_CASE(13, complex64)
    CAST_CASE(14, complex128)
  }
}

__device__ void convert_item(const Arguments& call, int64_t i) {
  const Offsets o = offsets_of(call, i, 0);
  store_cast(operand(call, 0, o.of[0]), call.out, load(operand(call, 1, o.of[1]), call.in));
}

// n: the bits of the start, and of the step.
__device__ void count_item(const Arguments& call, int64_t i) {
#ifndef IS_BOOL
  constexpr uint64_t kShifts = 0x433211321032100;  // log2 of an element's bytes, four bits per dtype
  const T start = load(reinterpret_cast<const char*>(call.n), call.in);
  const T by = load(reinterpret_cast<const char*>(call.n + 2), call.in);
#if defined(IS_COMPLEX)
  const T value{start.re + i * by.re, start.im + i * by.im};
#elif defined(IS_INTEGER)
  const T value = static_cast<T>(static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(by));
#else
  const T value = start + static_cast<T>(i) * by;
#endif
  store_cast(operand(call, 0, i << (kShifts >> (call.out * 4) & 15)), call.out, value);
#endif
}

// An item per segment of a result. The first loop: results, with the operands out and x; the second one: the n[0]
// elements of each. n[1], n[2]: segments of a result, elements of a segment; of one segment its total is the result,
// else the totals lie one after the other. n[3], n[4]: the bits of what the fold begins with.
__device__ void fold_item(const Arguments& call, int64_t i) {
  const int64_t segments = call.n[1], begin = i % segments * call.n[2];
  const int64_t end = begin + call.n[2] < call.n[0] ? begin + call.n[2] : call.n[0];
  const Offsets result = offsets_of(call, i / segments, 0);
  T total = load(reinterpret_cast<const char*>(call.n + 3), call.out);
  for (int64_t k = begin; k < end; ++k) {
    const char* from = operand(call, 1, result.of[1] + offsets_of(call, k, 1).of[0]);
    total = join(call.function, total, load(from, call.in));
  }
  store(operand(call, 0, segments > 1 ? i * item_of(call.out) : result.of[0]), call.out, total);
}

// Along an axis, n: length of a line, elements between two of a line; begin and end of the part of the line that this
// launch goes through, after those before it. Where the item's line begins, in elements:
__device__ int64_t line_start(const Arguments& call, int64_t i) {
  return i / call.n[1] * call.n[0] * call.n[1] + i % call.n[1];
}
// Element k of the line that begins at `first`.
__device__ T line_element(const Arguments& call, int64_t first, int64_t k) {
  return load(operand(call, 1, (first + k * call.n[1]) * item_of(call.in)), call.in);
}

__device__ void running_item(const Arguments& call, int64_t i) {
  const int64_t first = line_start(call, i), begin = call.n[2], item = item_of(call.out);
  T carry{}, total{};
  if (begin > 0) carry = load(operand(call, 0, (first + (begin - 1) * call.n[1]) * item), call.out);
  for (int64_t k = begin; k < call.n[3]; ++k) {
    const T next = line_element(call, first, k);
    total = k == begin ? next : join(call.function, total, next);
    store(operand(call, 0, (first + k * call.n[1]) * item), call.out,
          begin > 0 ? join(call.function, carry, total) : total);
  }
}

__device__ void arg_extreme_item(const Arguments& call, int64_t i) {
#ifndef IS_COMPLEX
  const int64_t first = line_start(call, i);
  int64_t place = call.n[2] == 0 ? 0 : places(call, 0)[i];
  T best = line_element(call, first, place);
  for (int64_t k = call.n[2]; k < call.n[3]; ++k) {  // strictly better, or the first NaN
    const T next = line_element(call, first, k);
    if (best != best || join(call.function, best, next) == best) continue;
    best = next;
    place = k;
  }
  places(call, 0)[i] = place;
#endif
}

#ifndef IS_COMPLEX
// Whether x stands before y in the order asked for; a NaN counts as the largest. n[2]: 1: descending.
__device__ bool goes_first(const Arguments& call, T x, T y) {
  const T a = call.n[2] != 0 ? y : x, b = call.n[2] != 0 ? x : y;
  return a < b || (a == a && b != b);
}
#endif

// A pass of a stable merge sort, an item per element: two sorted runs of n[3] elements become one. An element goes as
// far behind the start of its own run as elements of the other run stand before it. at: sorted positions, x, those
// before.
__device__ void merge_item(const Arguments& call, int64_t i) {
#ifndef IS_COMPLEX
  const int64_t length = call.n[0], inner = call.n[1], width = call.n[3], k = i / inner % length, first = i - k * inner;
  const int64_t begin = k - k % (2 * width), middle = begin + width < length ? begin + width : length;
  const int64_t end = middle + width < length ? middle + width : length;
  const auto position_at = [&](int64_t at) { return width == 1 ? at : places(call, 2)[first + at * inner]; };
  const bool is_left = k < middle;
  const int64_t position = position_at(k), other = is_left ? middle : begin;
  const T own = line_element(call, first, position);
  int64_t low = other, high = is_left ? end : middle;
  while (low < high) {
    const int64_t split = (low + high) / 2;
    const T theirs = line_element(call, first, position_at(split));
    const bool stands_before = is_left ? goes_first(call, theirs, own) : !goes_first(call, own, theirs);
    if (stands_before)
      low = split + 1;
    else
      high = split;
  }
  places(call, 0)[first + (begin + (k - (is_left ? begin : middle)) + (low - other)) * inner] = position;
#endif
}

// An item per element of the result (stack..., rows, columns). n: rows, depth, columns; begin and end of the part of
// the depth that this launch adds to the result.
__device__ void product_item(const Arguments& call, int64_t i) {
  const int64_t depth = call.n[1], columns = call.n[2], column = i % columns, row = i / columns % call.n[0];
  const Offsets o = offsets_of(call, i / columns / call.n[0], 0);
  const int64_t item = item_of(call.in);
  T sum{};
  for (int64_t d = call.n[3]; d < call.n[4]; ++d) {
    const T x = load(operand(call, 1, o.of[1] + (row * depth + d) * item), call.in);
    const T y = load(operand(call, 2, o.of[2] + (d * columns + column) * item), call.in);
    sum = join(call.second, sum, join(call.function, x, y));
  }
  char* const result = operand(call, 0, o.of[0] + (row * columns + column) * item);
  store(result, call.out, call.n[3] > 0 ? join(call.second, load(result, call.out), sum) : sum);
}

// Adds to the byte offset of each joint position what the index of one axis asks for. n: size and stride of the axis.
__device__ void add_positions_item(const Arguments& call, int64_t i) {
#ifdef IS_INTEGER
  const Offsets o = offsets_of(call, i, 0);
  const T value = load(operand(call, 1, o.of[1]), call.in);
  const bool below = value < 0;
  int64_t place = static_cast<int64_t>(value) + (below ? call.n[0] : 0);
  if ((!below && static_cast<uint64_t>(value) >= static_cast<uint64_t>(call.n[0])) || place < 0) {
    report(call);
    place = 0;
  }
  *reinterpret_cast<int64_t*>(operand(call, 0, o.of[0])) += place * call.n[1];
#endif
}

// As put_selected in moves.cu, but adds to the element.
__device__ void add_selected_item(const Arguments& call, int64_t i) {
  const Offsets kept = offsets_of(call, i, 1);
  for (int64_t j = call.n[0]; j < call.n[1]; ++j) {
    char* to = operand(call, 0, places(call, 2)[j] + kept.of[1]);
    const char* from = operand(call, 1, offsets_of(call, j, 0).of[0] + kept.of[0]);
    store(to, call.out, join(call.function, load(to, call.in), load(from, call.in)));
  }
}

}  // namespace minimal

MINIMAL_TYPED_KERNELS(MINIMAL_KERNEL)
