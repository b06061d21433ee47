// Arithmetic of one class of dtypes, which CLASS names: float32 (with the half floats), float64, int64 (all integers and
// bool), complex64, complex128. T is the type that it computes in.
#include "call.glsl"

#define T TYPE
#define LOAD JOIN(load_, CLASS)

#if defined(BACKPLANE_COMPLEX)
T one() { return T(1, 0); }
T add(T x, T y) {
  precise T sum = x + y;
  return sum;
}
T times(T x, T y) { return JOIN(bp_multiply_, CLASS)(x, y); }
bool is_zero(T x) { return x.x == 0 && x.y == 0; }
#else
T one() { return T(1); }
T add(T x, T y) { return x + y; }
T times(T x, T y) { return x * y; }
bool is_zero(T x) { return x == T(0); }
#endif

#if defined(BACKPLANE_INTEGER)
bool is_nan(T x) { return false; }
bool below(T x, T y) { return kIn == kUint64 ? uint64_t(x) < uint64_t(y) : x < y; }
#elif !defined(BACKPLANE_COMPLEX)
bool is_nan(T x) { return isnan(x); }
bool below(T x, T y) { return x < y; }
#endif

// Two neighbours in memory, which of float32 lie in one aligned word.
void load_pair(uint64_t first, out T low, out T high) {
#ifdef BACKPLANE_PAIRS
  const vec2 both = uintBitsToFloat(unpackUint2x32(Ref64(first).v));
  low = both.x;
  high = both.y;
#else
  low = LOAD(first, kIn);
  high = LOAD(element(first, 1, kIn), kIn);
#endif
}
void store_pair(uint64_t first, T low, T high) {
#ifdef BACKPLANE_PAIRS
  Ref64(first).v = packUint2x32(floatBitsToUint(vec2(low, high)));
#else
  store(first, kOut, low);
  store(element(first, 1, kOut), kOut, high);
#endif
}
