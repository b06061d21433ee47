// Conversion of kIn to kOut: each class of dtypes in its widest type, from which codegen's functions convert.
//
// at: result, x. n, kOption: as in loop.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "loop.glsl"

#ifdef BACKPLANE_FLOAT64
#define CASES_OF_FLOAT64(from)                                                \
  case kFloat64: store(to, kOut, JOIN(bp_cast_##from, _float64)(x)); break;   \
  case kComplex128: store(to, kOut, JOIN(bp_cast_##from, _complex128)(x)); break;
#else
#define CASES_OF_FLOAT64(from)
#endif

// Of at most 32 bits.
#define PUT(value)                                                            \
  if (kPaired)                                                                \
    pair |= word(value, kOut) << (e * (8u << shift_of(kOut)));                \
  else                                                                        \
    store(to, kOut, value);

#define STORE_CAST(from)                                                          \
  switch (kOut) {                                                                 \
    case kBool: PUT(JOIN(bp_cast_##from, _bool)(x)) break;                        \
    case kInt8: PUT(JOIN(bp_cast_##from, _int8)(x)) break;                        \
    case kInt16: PUT(JOIN(bp_cast_##from, _int16)(x)) break;                      \
    case kInt32: PUT(JOIN(bp_cast_##from, _int32)(x)) break;                      \
    case kInt64: store(to, kOut, JOIN(bp_cast_##from, _int64)(x)); break;         \
    case kUint8: PUT(JOIN(bp_cast_##from, _uint8)(x)) break;                      \
    case kUint16: PUT(JOIN(bp_cast_##from, _uint16)(x)) break;                    \
    case kUint32: PUT(JOIN(bp_cast_##from, _uint32)(x)) break;                    \
    case kUint64: store(to, kOut, JOIN(bp_cast_##from, _uint64)(x)); break;       \
    case kFloat16:                                                                \
    case kBfloat16:                                                               \
    case kFloat32: PUT(JOIN(bp_cast_##from, _float32)(x)) break;                  \
    case kComplex64: store(to, kOut, JOIN(bp_cast_##from, _complex64)(x)); break; \
      CASES_OF_FLOAT64(from)                                                      \
  }

void main() {
  receive();
  const uint count = n[0], each = kPaired ? 2u : 1u;
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    int offsets[4];
    loop_offsets(i, 2u, offsets);
    const uint64_t to = element(at[0], offsets[0], kOut), from = element(at[1], offsets[1], kIn);
    uint64_t xs = 0ul, pair = 0ul;
    if (kPaired) xs = pair_at(i, 1u, kIn);
    for (uint e = 0u; e < each; ++e) {
      if (kIn < kUint64) {
        int64_t x;
        if (kPaired)
          x = int64_of(half_of(xs, e, 1u, kIn), kIn);
        else
          x = load_int64(from, kIn);
        STORE_CAST(int64)
      } else if (kIn == kUint64) {
        const uint64_t x = load_uint64(from, kIn);
        STORE_CAST(uint64)
      } else if (kIn <= kFloat32) {
        float x;
        if (kPaired)
          x = float32_of(half_of(xs, e, 1u, kIn), kIn);
        else
          x = load_float32(from, kIn);
        STORE_CAST(float32)
      } else if (kIn == kComplex64) {
        const vec2 x = load_complex64(from, kIn);
        STORE_CAST(complex64)
#ifdef BACKPLANE_FLOAT64
      } else if (kIn == kFloat64) {
        const double x = load_float64(from, kIn);
        STORE_CAST(float64)
      } else {
        const dvec2 x = load_complex128(from, kIn);
        STORE_CAST(complex128)
#endif
      }
    }
    if (kPaired) store_pair_at(i, kOut, pair);
  }
}
