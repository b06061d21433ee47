// What the elementwise ops of namespace demo do to one element. Made by backplane-codegen from golden.yaml; edit that instead.
//
// NAME_OP_DTYPE(…), and lists of them: NAME_SCALAR_UNARY_DTYPE_RESULT(ROW) is ROW(op, function, number) for each.
#ifndef DEMO_SCALAR_CL
#define DEMO_SCALAR_CL

#ifndef BP_SCALAR_PRELUDE
#define BP_SCALAR_PRELUDE

#pragma OPENCL FP_CONTRACT OFF
#ifndef BP_SCALAR_WITHOUT_FLOAT64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
static inline double bp_inf_float64(void) { return INFINITY; }
static inline double bp_nan_float64(void) { return NAN; }
#endif
static inline float bp_inf_float32(void) { return INFINITY; }
static inline float bp_nan_float32(void) { return NAN; }
static inline uint bp_bits_of_float(float x) { return as_uint(x); }
static inline float bp_float_of_bits(uint bits) { return as_float(bits); }

static inline float bp_float32_of_float16(uint half_bits) {
  uint sign = (half_bits & 0x8000u) << 16, exponent = half_bits >> 10 & 31u, digits = half_bits & 1023u;
  if (exponent == 0u) {
    float size = (float)(digits) * 5.96046448e-8f;
    return sign != 0u ? -size : size;
  }
  return bp_float_of_bits(sign | (exponent == 31u ? 0x7f800000u : (exponent + 112u) << 23) | digits << 13);
}
static inline uint bp_float16_of_float32(float x) {
  uint bits = bp_bits_of_float(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return sign | 0x7e00u;
  if (size >= 0x477ff000u) return sign | 0x7c00u;
  if (size < 0x38800000u) return sign | (uint)(rint(bp_float_of_bits(size) * 16777216.0f));
  return sign | (size + 0xfffu + (size >> 13 & 1u) - (112u << 23)) >> 13;
}
static inline float bp_float32_of_bfloat16(uint half_bits) { return bp_float_of_bits(half_bits << 16); }
static inline uint bp_bfloat16_of_float32(float x) {
  uint bits = bp_bits_of_float(x);
  return (bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

static inline int bp_floor_divide_of_int32(int x, int y) {
  if (y == (int)(0)) return (int)(0);
  if (y == -(int)(1)) return (int)((uint)(0) - (uint)(x));
  int quotient = x / y;
  int rest = (int)((uint)(x) - (uint)(quotient) * (uint)(y));
  return rest != (int)(0) && (rest < (int)(0)) != (y < (int)(0)) ? quotient - (int)(1) : quotient;
}
static inline int bp_fmod_of_int32(int x, int y) {
  if (y == (int)(0)) return (int)(0);
  if (y == -(int)(1)) return (int)(0);
  return (int)((uint)(x) - (uint)(x / y) * (uint)(y));
}
static inline int bp_pow_of_int32(int x, int y) {
  uint power = (uint)(1), base = (uint)(x);
  for (uint left = (uint)(y); left != (uint)(0); left >>= 1) {
    if ((left & (uint)(1)) != (uint)(0)) power *= base;
    base *= base;
  }
  return (int)(power);
}
static inline int bp_bitwise_and_of_int32(int x, int y) { return x & y; }
static inline int bp_bitwise_or_of_int32(int x, int y) { return x | y; }
static inline int bp_bitwise_xor_of_int32(int x, int y) { return x ^ y; }
static inline int bp_bitwise_invert_of_int32(int x) { return ~x; }
static inline int bp_bitwise_left_shift_of_int32(int x, int y, uint bits) {
  return (uint)(y) < (uint)(bits) ? (int)((uint)(x) << (uint)(y)) : (int)(0);
}
static inline int bp_bitwise_right_shift_of_int32(int x, int y, uint bits) {
  if ((uint)(y) < (uint)(bits)) return x >> (uint)(y);
  return x < (int)(0) ? ~(int)(0) : (int)(0);
}

static inline uint bp_floor_divide_of_uint32(uint x, uint y) {
  if (y == (uint)(0)) return (uint)(0);
  
  uint quotient = x / y;
  uint rest = (uint)((uint)(x) - (uint)(quotient) * (uint)(y));
  return rest != (uint)(0) && (rest < (uint)(0)) != (y < (uint)(0)) ? quotient - (uint)(1) : quotient;
}
static inline uint bp_fmod_of_uint32(uint x, uint y) {
  if (y == (uint)(0)) return (uint)(0);
  
  return (uint)((uint)(x) - (uint)(x / y) * (uint)(y));
}
static inline uint bp_pow_of_uint32(uint x, uint y) {
  uint power = (uint)(1), base = (uint)(x);
  for (uint left = (uint)(y); left != (uint)(0); left >>= 1) {
    if ((left & (uint)(1)) != (uint)(0)) power *= base;
    base *= base;
  }
  return (uint)(power);
}
static inline uint bp_bitwise_and_of_uint32(uint x, uint y) { return x & y; }
static inline uint bp_bitwise_or_of_uint32(uint x, uint y) { return x | y; }
static inline uint bp_bitwise_xor_of_uint32(uint x, uint y) { return x ^ y; }
static inline uint bp_bitwise_invert_of_uint32(uint x) { return ~x; }
static inline uint bp_bitwise_left_shift_of_uint32(uint x, uint y, uint bits) {
  return (uint)(y) < (uint)(bits) ? (uint)((uint)(x) << (uint)(y)) : (uint)(0);
}
static inline uint bp_bitwise_right_shift_of_uint32(uint x, uint y, uint bits) {
  if ((uint)(y) < (uint)(bits)) return x >> (uint)(y);
  return x < (uint)(0) ? ~(uint)(0) : (uint)(0);
}
#ifndef BP_SCALAR_WITHOUT_INT64
static inline long bp_floor_divide_of_int64(long x, long y) {
  if (y == (long)(0)) return (long)(0);
  if (y == -(long)(1)) return (long)((ulong)(0) - (ulong)(x));
  long quotient = x / y;
  long rest = (long)((ulong)(x) - (ulong)(quotient) * (ulong)(y));
  return rest != (long)(0) && (rest < (long)(0)) != (y < (long)(0)) ? quotient - (long)(1) : quotient;
}
static inline long bp_fmod_of_int64(long x, long y) {
  if (y == (long)(0)) return (long)(0);
  if (y == -(long)(1)) return (long)(0);
  return (long)((ulong)(x) - (ulong)(x / y) * (ulong)(y));
}
static inline long bp_pow_of_int64(long x, long y) {
  ulong power = (ulong)(1), base = (ulong)(x);
  for (ulong left = (ulong)(y); left != (ulong)(0); left >>= 1) {
    if ((left & (ulong)(1)) != (ulong)(0)) power *= base;
    base *= base;
  }
  return (long)(power);
}
static inline long bp_bitwise_and_of_int64(long x, long y) { return x & y; }
static inline long bp_bitwise_or_of_int64(long x, long y) { return x | y; }
static inline long bp_bitwise_xor_of_int64(long x, long y) { return x ^ y; }
static inline long bp_bitwise_invert_of_int64(long x) { return ~x; }
static inline long bp_bitwise_left_shift_of_int64(long x, long y, uint bits) {
  return (ulong)(y) < (ulong)(bits) ? (long)((ulong)(x) << (uint)(y)) : (long)(0);
}
static inline long bp_bitwise_right_shift_of_int64(long x, long y, uint bits) {
  if ((ulong)(y) < (ulong)(bits)) return x >> (uint)(y);
  return x < (long)(0) ? ~(long)(0) : (long)(0);
}

static inline ulong bp_floor_divide_of_uint64(ulong x, ulong y) {
  if (y == (ulong)(0)) return (ulong)(0);
  
  ulong quotient = x / y;
  ulong rest = (ulong)((ulong)(x) - (ulong)(quotient) * (ulong)(y));
  return rest != (ulong)(0) && (rest < (ulong)(0)) != (y < (ulong)(0)) ? quotient - (ulong)(1) : quotient;
}
static inline ulong bp_fmod_of_uint64(ulong x, ulong y) {
  if (y == (ulong)(0)) return (ulong)(0);
  
  return (ulong)((ulong)(x) - (ulong)(x / y) * (ulong)(y));
}
static inline ulong bp_pow_of_uint64(ulong x, ulong y) {
  ulong power = (ulong)(1), base = (ulong)(x);
  for (ulong left = (ulong)(y); left != (ulong)(0); left >>= 1) {
    if ((left & (ulong)(1)) != (ulong)(0)) power *= base;
    base *= base;
  }
  return (ulong)(power);
}
static inline ulong bp_bitwise_and_of_uint64(ulong x, ulong y) { return x & y; }
static inline ulong bp_bitwise_or_of_uint64(ulong x, ulong y) { return x | y; }
static inline ulong bp_bitwise_xor_of_uint64(ulong x, ulong y) { return x ^ y; }
static inline ulong bp_bitwise_invert_of_uint64(ulong x) { return ~x; }
static inline ulong bp_bitwise_left_shift_of_uint64(ulong x, ulong y, uint bits) {
  return (ulong)(y) < (ulong)(bits) ? (ulong)((ulong)(x) << (uint)(y)) : (ulong)(0);
}
static inline ulong bp_bitwise_right_shift_of_uint64(ulong x, ulong y, uint bits) {
  if ((ulong)(y) < (ulong)(bits)) return x >> (uint)(y);
  return x < (ulong)(0) ? ~(ulong)(0) : (ulong)(0);
}
#endif

static inline int bp_int32_of_float32(float x) {
  return x >= (-2147483648.0f) && x < (2147483648.0f) ? (int)(x) : (int)(-2147483647 - 1);
}

static inline uint bp_uint32_of_float32(float x) {
  if (!(x >= (-9223372036854775808.0f) && x < (9223372036854775808.0f))) return 0u;
  float size = floor(x < (0.0f) ? -x : x);
  uint low = (uint)(size - floor(size * (2.3283064365386963e-10f)) * (4294967296.0f));
  return x < (0.0f) ? 0u - low : low;
}
#ifndef BP_SCALAR_WITHOUT_INT64
static inline long bp_int64_of_float32(float x) {
  return x >= (-9223372036854775808.0f) && x < (9223372036854775808.0f) ? (long)(x) : ((long)(-9223372036854775807L - 1));
}
static inline ulong bp_uint64_of_float32(float x) {
  if (!(x >= (9223372036854775808.0f))) return (ulong)(bp_int64_of_float32(x));
  return x < (18446744073709551616.0f) ? (ulong)(x) : (ulong)(((long)(-9223372036854775807L - 1)));
}
#endif
#ifndef BP_SCALAR_WITHOUT_FLOAT64
static inline int bp_int32_of_float64(double x) {
  return x >= (-2147483648.0) && x < (2147483648.0) ? (int)(x) : (int)(-2147483647 - 1);
}

static inline uint bp_uint32_of_float64(double x) {
  if (!(x >= (-9223372036854775808.0) && x < (9223372036854775808.0))) return 0u;
  double size = floor(x < (0.0) ? -x : x);
  uint low = (uint)(size - floor(size * (2.3283064365386963e-10)) * (4294967296.0));
  return x < (0.0) ? 0u - low : low;
}
#ifndef BP_SCALAR_WITHOUT_INT64
static inline long bp_int64_of_float64(double x) {
  return x >= (-9223372036854775808.0) && x < (9223372036854775808.0) ? (long)(x) : ((long)(-9223372036854775807L - 1));
}
static inline ulong bp_uint64_of_float64(double x) {
  if (!(x >= (9223372036854775808.0))) return (ulong)(bp_int64_of_float64(x));
  return x < (18446744073709551616.0) ? (ulong)(x) : (ulong)(((long)(-9223372036854775807L - 1)));
}
#endif
#endif
#endif  // BP_SCALAR_PRELUDE
#if !defined(BP_SCALAR_WITHOUT_INT8)
static inline char demo_axpby_int8(char x_0, char y_1, char alpha_2, char beta_3) {
  return ((char)(((uint)(((char)(((uint)(x_0)) * ((uint)(alpha_2)))))) + ((uint)(((char)(((uint)(y_1)) * ((uint)(beta_3))))))));
}
#endif
#if !defined(BP_SCALAR_WITHOUT_INT16)
static inline short demo_axpby_int16(short x_0, short y_1, short alpha_2, short beta_3) {
  return ((short)(((uint)(((short)(((uint)(x_0)) * ((uint)(alpha_2)))))) + ((uint)(((short)(((uint)(y_1)) * ((uint)(beta_3))))))));
}
#endif
static inline int demo_axpby_int32(int x_0, int y_1, int alpha_2, int beta_3) {
  return ((int)(((uint)(((int)(((uint)(x_0)) * ((uint)(alpha_2)))))) + ((uint)(((int)(((uint)(y_1)) * ((uint)(beta_3))))))));
}
#if !defined(BP_SCALAR_WITHOUT_INT64)
static inline long demo_axpby_int64(long x_0, long y_1, long alpha_2, long beta_3) {
  return ((long)(((ulong)(((long)(((ulong)(x_0)) * ((ulong)(alpha_2)))))) + ((ulong)(((long)(((ulong)(y_1)) * ((ulong)(beta_3))))))));
}
#endif
#if !defined(BP_SCALAR_WITHOUT_INT8)
static inline uchar demo_axpby_uint8(uchar x_0, uchar y_1, uchar alpha_2, uchar beta_3) {
  return ((uchar)(((uint)(((uchar)(((uint)(x_0)) * ((uint)(alpha_2)))))) + ((uint)(((uchar)(((uint)(y_1)) * ((uint)(beta_3))))))));
}
#endif
#if !defined(BP_SCALAR_WITHOUT_INT16)
static inline ushort demo_axpby_uint16(ushort x_0, ushort y_1, ushort alpha_2, ushort beta_3) {
  return ((ushort)(((uint)(((ushort)(((uint)(x_0)) * ((uint)(alpha_2)))))) + ((uint)(((ushort)(((uint)(y_1)) * ((uint)(beta_3))))))));
}
#endif
static inline uint demo_axpby_uint32(uint x_0, uint y_1, uint alpha_2, uint beta_3) {
  return ((uint)(((uint)(((uint)(((uint)(x_0)) * ((uint)(alpha_2)))))) + ((uint)(((uint)(((uint)(y_1)) * ((uint)(beta_3))))))));
}
#if !defined(BP_SCALAR_WITHOUT_INT64)
static inline ulong demo_axpby_uint64(ulong x_0, ulong y_1, ulong alpha_2, ulong beta_3) {
  return ((ulong)(((ulong)(((ulong)(((ulong)(x_0)) * ((ulong)(alpha_2)))))) + ((ulong)(((ulong)(((ulong)(y_1)) * ((ulong)(beta_3))))))));
}
#endif
static inline float demo_axpby_float32(float x_0, float y_1, float alpha_2, float beta_3) {
  return ((x_0 * alpha_2) + (y_1 * beta_3));
}
#if !defined(BP_SCALAR_WITHOUT_FLOAT64)
static inline double demo_axpby_float64(double x_0, double y_1, double alpha_2, double beta_3) {
  return ((x_0 * alpha_2) + (y_1 * beta_3));
}
#endif
static inline float demo_cube_float32(float x_0) {
  float s_1 = (x_0 * x_0);
  return (x_0 * s_1);
}
#if !defined(BP_SCALAR_WITHOUT_FLOAT64)
static inline double demo_cube_float64(double x_0) {
  double s_1 = (x_0 * x_0);
  return (x_0 * s_1);
}
#endif

#define DEMO_SCALAR_UNARY_float32_float32_COUNT 1
#define DEMO_SCALAR_UNARY_float32_float32(ROW) \
  ROW(cube, demo_cube_float32, 0)
#define DEMO_SCALAR_UNARY_float64_float64_COUNT 1
#define DEMO_SCALAR_UNARY_float64_float64(ROW) \
  ROW(cube, demo_cube_float64, 0)

#endif  // DEMO_SCALAR_CL
