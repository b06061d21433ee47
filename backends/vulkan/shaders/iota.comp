// Evenly spaced values: start + i * step.
//
// at: result, and where start and step stand. n: count. kFunction 0: both are int64, which counts exactly and wraps; 1:
// both are two doubles each, and the value is rounded once.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "call.glsl"

#define STORE_AS(dtype, from) store(to, kOut, JOIN(bp_cast_##from, JOIN(_, dtype))(x))
#define STORE_REAL(from)                           \
  switch (kOut) {                                  \
    case kBool: STORE_AS(bool, from); break;       \
    case kInt8: STORE_AS(int8, from); break;       \
    case kInt16: STORE_AS(int16, from); break;     \
    case kInt32: STORE_AS(int32, from); break;     \
    case kInt64: STORE_AS(int64, from); break;     \
    case kUint8: STORE_AS(uint8, from); break;     \
    case kUint16: STORE_AS(uint16, from); break;   \
    case kUint32: STORE_AS(uint32, from); break;   \
    case kUint64: STORE_AS(uint64, from); break;   \
    case kFloat16:                                 \
    case kBfloat16:                                \
    case kFloat32: STORE_AS(float32, from); break; \
    STORE_FLOAT64(from)                            \
  }
#ifdef BACKPLANE_FLOAT64
#define STORE_FLOAT64(from) \
  case kFloat64: STORE_AS(float64, from); break;
#else
#define STORE_FLOAT64(from)
#endif

void main() {
  receive();
  for (uint i = gl_GlobalInvocationID.x; i < n[0]; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    const uint64_t to = element(at[0], int(i), kOut);
    if (kFunction == 0u) {
      const int64_t x = load_int64(at[1], kInt64) + int64_t(i) * load_int64(at[2], kInt64);
      if (kOut == kComplex64) STORE_AS(complex64, int64);
#ifdef BACKPLANE_FLOAT64
      if (kOut == kComplex128) STORE_AS(complex128, int64);
#endif
      STORE_REAL(int64)
#ifdef BACKPLANE_FLOAT64
    } else if (kOut == kComplex64 || kOut == kComplex128) {
      precise const dvec2 x = load_complex128(at[1], kComplex128) + double(i) * load_complex128(at[2], kComplex128);
      if (kOut == kComplex64) STORE_AS(complex64, complex128);
      if (kOut == kComplex128) STORE_AS(complex128, complex128);
    } else {
      precise const double x = load_float64(at[1], kFloat64) + double(i) * load_float64(at[2], kFloat64);
      STORE_REAL(float64)
#endif
    }
  }
}
