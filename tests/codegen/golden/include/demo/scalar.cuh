// What the elementwise ops of namespace demo do to one element. Made by backplane-codegen from golden.yaml; edit that instead.
//
// NAME_OP_DTYPE(…), and lists of them: NAME_SCALAR_UNARY_DTYPE_RESULT(ROW) is ROW(op, function, number) for each.
#ifndef DEMO_SCALAR_CUH
#define DEMO_SCALAR_CUH

#ifndef BP_SCALAR_PRELUDE
#define BP_SCALAR_PRELUDE
#define BP_SCALAR_FN __host__ __device__ inline 
#ifdef __NVCC__
#pragma nv_diagnostic push
#pragma nv_diag_suppress 186
#endif
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wconversion"
#endif

#include <math.h>
#include <stdint.h>
#include <string.h>

struct bp_complex64 {
  float re, im;
};
struct bp_complex128 {
  double re, im;
};
__host__ __device__ inline float bp_inf_float32() { return INFINITY; }
__host__ __device__ inline float bp_nan_float32() { return NAN; }
__host__ __device__ inline double bp_inf_float64() { return INFINITY; }
__host__ __device__ inline double bp_nan_float64() { return NAN; }
__host__ __device__ inline uint32_t bp_bits_of_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
__host__ __device__ inline float bp_float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

__host__ __device__ inline float bp_float32_of_float16(uint32_t half_bits) {
  uint32_t sign = (half_bits & 0x8000u) << 16, exponent = half_bits >> 10 & 31u, digits = half_bits & 1023u;
  if (exponent == 0u) {
    float size = (float)(digits) * 5.96046448e-8f;
    return sign != 0u ? -size : size;
  }
  return bp_float_of_bits(sign | (exponent == 31u ? 0x7f800000u : (exponent + 112u) << 23) | digits << 13);
}
__host__ __device__ inline uint32_t bp_float16_of_float32(float x) {
  uint32_t bits = bp_bits_of_float(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return sign | 0x7e00u;
  if (size >= 0x477ff000u) return sign | 0x7c00u;
  if (size < 0x38800000u) return sign | (uint32_t)(rintf(bp_float_of_bits(size) * 16777216.0f));
  return sign | (size + 0xfffu + (size >> 13 & 1u) - (112u << 23)) >> 13;
}
__host__ __device__ inline float bp_float32_of_bfloat16(uint32_t half_bits) { return bp_float_of_bits(half_bits << 16); }
__host__ __device__ inline uint32_t bp_bfloat16_of_float32(float x) {
  uint32_t bits = bp_bits_of_float(x);
  return (bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

__host__ __device__ inline int32_t bp_floor_divide_of_int32(int32_t x, int32_t y) {
  if (y == (int32_t)(0)) return (int32_t)(0);
  if (y == -(int32_t)(1)) return (int32_t)((uint32_t)(0) - (uint32_t)(x));
  int32_t quotient = x / y;
  int32_t rest = (int32_t)((uint32_t)(x) - (uint32_t)(quotient) * (uint32_t)(y));
  return rest != (int32_t)(0) && (rest < (int32_t)(0)) != (y < (int32_t)(0)) ? quotient - (int32_t)(1) : quotient;
}
__host__ __device__ inline int32_t bp_fmod_of_int32(int32_t x, int32_t y) {
  if (y == (int32_t)(0)) return (int32_t)(0);
  if (y == -(int32_t)(1)) return (int32_t)(0);
  return (int32_t)((uint32_t)(x) - (uint32_t)(x / y) * (uint32_t)(y));
}
__host__ __device__ inline int32_t bp_pow_of_int32(int32_t x, int32_t y) {
  uint32_t power = (uint32_t)(1), base = (uint32_t)(x);
  for (uint32_t left = (uint32_t)(y); left != (uint32_t)(0); left >>= 1) {
    if ((left & (uint32_t)(1)) != (uint32_t)(0)) power *= base;
    base *= base;
  }
  return (int32_t)(power);
}
__host__ __device__ inline int32_t bp_bitwise_and_of_int32(int32_t x, int32_t y) { return x & y; }
__host__ __device__ inline int32_t bp_bitwise_or_of_int32(int32_t x, int32_t y) { return x | y; }
__host__ __device__ inline int32_t bp_bitwise_xor_of_int32(int32_t x, int32_t y) { return x ^ y; }
__host__ __device__ inline int32_t bp_bitwise_invert_of_int32(int32_t x) { return ~x; }
__host__ __device__ inline int32_t bp_bitwise_left_shift_of_int32(int32_t x, int32_t y, uint32_t bits) {
  return (uint32_t)(y) < (uint32_t)(bits) ? (int32_t)((uint32_t)(x) << (uint32_t)(y)) : (int32_t)(0);
}
__host__ __device__ inline int32_t bp_bitwise_right_shift_of_int32(int32_t x, int32_t y, uint32_t bits) {
  if ((uint32_t)(y) < (uint32_t)(bits)) return x >> (uint32_t)(y);
  return x < (int32_t)(0) ? ~(int32_t)(0) : (int32_t)(0);
}

__host__ __device__ inline uint32_t bp_floor_divide_of_uint32(uint32_t x, uint32_t y) {
  if (y == (uint32_t)(0)) return (uint32_t)(0);
  
  uint32_t quotient = x / y;
  uint32_t rest = (uint32_t)((uint32_t)(x) - (uint32_t)(quotient) * (uint32_t)(y));
  return rest != (uint32_t)(0) && (rest < (uint32_t)(0)) != (y < (uint32_t)(0)) ? quotient - (uint32_t)(1) : quotient;
}
__host__ __device__ inline uint32_t bp_fmod_of_uint32(uint32_t x, uint32_t y) {
  if (y == (uint32_t)(0)) return (uint32_t)(0);
  
  return (uint32_t)((uint32_t)(x) - (uint32_t)(x / y) * (uint32_t)(y));
}
__host__ __device__ inline uint32_t bp_pow_of_uint32(uint32_t x, uint32_t y) {
  uint32_t power = (uint32_t)(1), base = (uint32_t)(x);
  for (uint32_t left = (uint32_t)(y); left != (uint32_t)(0); left >>= 1) {
    if ((left & (uint32_t)(1)) != (uint32_t)(0)) power *= base;
    base *= base;
  }
  return (uint32_t)(power);
}
__host__ __device__ inline uint32_t bp_bitwise_and_of_uint32(uint32_t x, uint32_t y) { return x & y; }
__host__ __device__ inline uint32_t bp_bitwise_or_of_uint32(uint32_t x, uint32_t y) { return x | y; }
__host__ __device__ inline uint32_t bp_bitwise_xor_of_uint32(uint32_t x, uint32_t y) { return x ^ y; }
__host__ __device__ inline uint32_t bp_bitwise_invert_of_uint32(uint32_t x) { return ~x; }
__host__ __device__ inline uint32_t bp_bitwise_left_shift_of_uint32(uint32_t x, uint32_t y, uint32_t bits) {
  return (uint32_t)(y) < (uint32_t)(bits) ? (uint32_t)((uint32_t)(x) << (uint32_t)(y)) : (uint32_t)(0);
}
__host__ __device__ inline uint32_t bp_bitwise_right_shift_of_uint32(uint32_t x, uint32_t y, uint32_t bits) {
  if ((uint32_t)(y) < (uint32_t)(bits)) return x >> (uint32_t)(y);
  return x < (uint32_t)(0) ? ~(uint32_t)(0) : (uint32_t)(0);
}

__host__ __device__ inline int64_t bp_floor_divide_of_int64(int64_t x, int64_t y) {
  if (y == (int64_t)(0)) return (int64_t)(0);
  if (y == -(int64_t)(1)) return (int64_t)((uint64_t)(0) - (uint64_t)(x));
  int64_t quotient = x / y;
  int64_t rest = (int64_t)((uint64_t)(x) - (uint64_t)(quotient) * (uint64_t)(y));
  return rest != (int64_t)(0) && (rest < (int64_t)(0)) != (y < (int64_t)(0)) ? quotient - (int64_t)(1) : quotient;
}
__host__ __device__ inline int64_t bp_fmod_of_int64(int64_t x, int64_t y) {
  if (y == (int64_t)(0)) return (int64_t)(0);
  if (y == -(int64_t)(1)) return (int64_t)(0);
  return (int64_t)((uint64_t)(x) - (uint64_t)(x / y) * (uint64_t)(y));
}
__host__ __device__ inline int64_t bp_pow_of_int64(int64_t x, int64_t y) {
  uint64_t power = (uint64_t)(1), base = (uint64_t)(x);
  for (uint64_t left = (uint64_t)(y); left != (uint64_t)(0); left >>= 1) {
    if ((left & (uint64_t)(1)) != (uint64_t)(0)) power *= base;
    base *= base;
  }
  return (int64_t)(power);
}
__host__ __device__ inline int64_t bp_bitwise_and_of_int64(int64_t x, int64_t y) { return x & y; }
__host__ __device__ inline int64_t bp_bitwise_or_of_int64(int64_t x, int64_t y) { return x | y; }
__host__ __device__ inline int64_t bp_bitwise_xor_of_int64(int64_t x, int64_t y) { return x ^ y; }
__host__ __device__ inline int64_t bp_bitwise_invert_of_int64(int64_t x) { return ~x; }
__host__ __device__ inline int64_t bp_bitwise_left_shift_of_int64(int64_t x, int64_t y, uint32_t bits) {
  return (uint64_t)(y) < (uint64_t)(bits) ? (int64_t)((uint64_t)(x) << (uint32_t)(y)) : (int64_t)(0);
}
__host__ __device__ inline int64_t bp_bitwise_right_shift_of_int64(int64_t x, int64_t y, uint32_t bits) {
  if ((uint64_t)(y) < (uint64_t)(bits)) return x >> (uint32_t)(y);
  return x < (int64_t)(0) ? ~(int64_t)(0) : (int64_t)(0);
}

__host__ __device__ inline uint64_t bp_floor_divide_of_uint64(uint64_t x, uint64_t y) {
  if (y == (uint64_t)(0)) return (uint64_t)(0);
  
  uint64_t quotient = x / y;
  uint64_t rest = (uint64_t)((uint64_t)(x) - (uint64_t)(quotient) * (uint64_t)(y));
  return rest != (uint64_t)(0) && (rest < (uint64_t)(0)) != (y < (uint64_t)(0)) ? quotient - (uint64_t)(1) : quotient;
}
__host__ __device__ inline uint64_t bp_fmod_of_uint64(uint64_t x, uint64_t y) {
  if (y == (uint64_t)(0)) return (uint64_t)(0);
  
  return (uint64_t)((uint64_t)(x) - (uint64_t)(x / y) * (uint64_t)(y));
}
__host__ __device__ inline uint64_t bp_pow_of_uint64(uint64_t x, uint64_t y) {
  uint64_t power = (uint64_t)(1), base = (uint64_t)(x);
  for (uint64_t left = (uint64_t)(y); left != (uint64_t)(0); left >>= 1) {
    if ((left & (uint64_t)(1)) != (uint64_t)(0)) power *= base;
    base *= base;
  }
  return (uint64_t)(power);
}
__host__ __device__ inline uint64_t bp_bitwise_and_of_uint64(uint64_t x, uint64_t y) { return x & y; }
__host__ __device__ inline uint64_t bp_bitwise_or_of_uint64(uint64_t x, uint64_t y) { return x | y; }
__host__ __device__ inline uint64_t bp_bitwise_xor_of_uint64(uint64_t x, uint64_t y) { return x ^ y; }
__host__ __device__ inline uint64_t bp_bitwise_invert_of_uint64(uint64_t x) { return ~x; }
__host__ __device__ inline uint64_t bp_bitwise_left_shift_of_uint64(uint64_t x, uint64_t y, uint32_t bits) {
  return (uint64_t)(y) < (uint64_t)(bits) ? (uint64_t)((uint64_t)(x) << (uint32_t)(y)) : (uint64_t)(0);
}
__host__ __device__ inline uint64_t bp_bitwise_right_shift_of_uint64(uint64_t x, uint64_t y, uint32_t bits) {
  if ((uint64_t)(y) < (uint64_t)(bits)) return x >> (uint32_t)(y);
  return x < (uint64_t)(0) ? ~(uint64_t)(0) : (uint64_t)(0);
}

__host__ __device__ inline int32_t bp_int32_of_float32(float x) {
  return x >= (-2147483648.0f) && x < (2147483648.0f) ? (int32_t)(x) : (int32_t)(-2147483647 - 1);
}

__host__ __device__ inline int64_t bp_int64_of_float32(float x) {
  return x >= (-9223372036854775808.0f) && x < (9223372036854775808.0f) ? (int64_t)(x) : ((int64_t)(INT64_C(-9223372036854775807) - 1));
}
__host__ __device__ inline uint64_t bp_uint64_of_float32(float x) {
  if (!(x >= (9223372036854775808.0f))) return (uint64_t)(bp_int64_of_float32(x));
  return x < (18446744073709551616.0f) ? (uint64_t)(x) : (uint64_t)(((int64_t)(INT64_C(-9223372036854775807) - 1)));
}

__host__ __device__ inline int32_t bp_int32_of_float64(double x) {
  return x >= (-2147483648.0) && x < (2147483648.0) ? (int32_t)(x) : (int32_t)(-2147483647 - 1);
}

__host__ __device__ inline int64_t bp_int64_of_float64(double x) {
  return x >= (-9223372036854775808.0) && x < (9223372036854775808.0) ? (int64_t)(x) : ((int64_t)(INT64_C(-9223372036854775807) - 1));
}
__host__ __device__ inline uint64_t bp_uint64_of_float64(double x) {
  if (!(x >= (9223372036854775808.0))) return (uint64_t)(bp_int64_of_float64(x));
  return x < (18446744073709551616.0) ? (uint64_t)(x) : (uint64_t)(((int64_t)(INT64_C(-9223372036854775807) - 1)));
}
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
#ifdef __NVCC__
#pragma nv_diagnostic pop
#endif
#endif  // BP_SCALAR_PRELUDE
#ifdef __NVCC__
#pragma nv_diagnostic push
#pragma nv_diag_suppress 186
#endif
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wconversion"
#endif
BP_SCALAR_FN int8_t demo_axpby_int8(int8_t x_0, int8_t y_1, int8_t alpha_2, int8_t beta_3) {
  return ((int8_t)(((uint32_t)(((int8_t)(((uint32_t)(x_0)) * ((uint32_t)(alpha_2)))))) + ((uint32_t)(((int8_t)(((uint32_t)(y_1)) * ((uint32_t)(beta_3))))))));
}
BP_SCALAR_FN int16_t demo_axpby_int16(int16_t x_0, int16_t y_1, int16_t alpha_2, int16_t beta_3) {
  return ((int16_t)(((uint32_t)(((int16_t)(((uint32_t)(x_0)) * ((uint32_t)(alpha_2)))))) + ((uint32_t)(((int16_t)(((uint32_t)(y_1)) * ((uint32_t)(beta_3))))))));
}
BP_SCALAR_FN int32_t demo_axpby_int32(int32_t x_0, int32_t y_1, int32_t alpha_2, int32_t beta_3) {
  return ((int32_t)(((uint32_t)(((int32_t)(((uint32_t)(x_0)) * ((uint32_t)(alpha_2)))))) + ((uint32_t)(((int32_t)(((uint32_t)(y_1)) * ((uint32_t)(beta_3))))))));
}
BP_SCALAR_FN int64_t demo_axpby_int64(int64_t x_0, int64_t y_1, int64_t alpha_2, int64_t beta_3) {
  return ((int64_t)(((uint64_t)(((int64_t)(((uint64_t)(x_0)) * ((uint64_t)(alpha_2)))))) + ((uint64_t)(((int64_t)(((uint64_t)(y_1)) * ((uint64_t)(beta_3))))))));
}
BP_SCALAR_FN uint8_t demo_axpby_uint8(uint8_t x_0, uint8_t y_1, uint8_t alpha_2, uint8_t beta_3) {
  return ((uint8_t)(((uint32_t)(((uint8_t)(((uint32_t)(x_0)) * ((uint32_t)(alpha_2)))))) + ((uint32_t)(((uint8_t)(((uint32_t)(y_1)) * ((uint32_t)(beta_3))))))));
}
BP_SCALAR_FN uint16_t demo_axpby_uint16(uint16_t x_0, uint16_t y_1, uint16_t alpha_2, uint16_t beta_3) {
  return ((uint16_t)(((uint32_t)(((uint16_t)(((uint32_t)(x_0)) * ((uint32_t)(alpha_2)))))) + ((uint32_t)(((uint16_t)(((uint32_t)(y_1)) * ((uint32_t)(beta_3))))))));
}
BP_SCALAR_FN uint32_t demo_axpby_uint32(uint32_t x_0, uint32_t y_1, uint32_t alpha_2, uint32_t beta_3) {
  return ((uint32_t)(((uint32_t)(((uint32_t)(((uint32_t)(x_0)) * ((uint32_t)(alpha_2)))))) + ((uint32_t)(((uint32_t)(((uint32_t)(y_1)) * ((uint32_t)(beta_3))))))));
}
BP_SCALAR_FN uint64_t demo_axpby_uint64(uint64_t x_0, uint64_t y_1, uint64_t alpha_2, uint64_t beta_3) {
  return ((uint64_t)(((uint64_t)(((uint64_t)(((uint64_t)(x_0)) * ((uint64_t)(alpha_2)))))) + ((uint64_t)(((uint64_t)(((uint64_t)(y_1)) * ((uint64_t)(beta_3))))))));
}
BP_SCALAR_FN float demo_axpby_float32(float x_0, float y_1, float alpha_2, float beta_3) {
  return ((x_0 * alpha_2) + (y_1 * beta_3));
}
BP_SCALAR_FN double demo_axpby_float64(double x_0, double y_1, double alpha_2, double beta_3) {
  return ((x_0 * alpha_2) + (y_1 * beta_3));
}
BP_SCALAR_FN float demo_cube_float32(float x_0) {
  float s_1 = (x_0 * x_0);
  return (x_0 * s_1);
}
BP_SCALAR_FN double demo_cube_float64(double x_0) {
  double s_1 = (x_0 * x_0);
  return (x_0 * s_1);
}
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
#ifdef __NVCC__
#pragma nv_diagnostic pop
#endif

namespace demo::scalar {
struct axpby {
  static constexpr unsigned kFaults = 1;
  BP_SCALAR_FN static int8_t of(int8_t x_0, int8_t y_1, int8_t alpha_2, int8_t beta_3) { return demo_axpby_int8(x_0, y_1, alpha_2, beta_3); }
  BP_SCALAR_FN static int16_t of(int16_t x_0, int16_t y_1, int16_t alpha_2, int16_t beta_3) { return demo_axpby_int16(x_0, y_1, alpha_2, beta_3); }
  BP_SCALAR_FN static int32_t of(int32_t x_0, int32_t y_1, int32_t alpha_2, int32_t beta_3) { return demo_axpby_int32(x_0, y_1, alpha_2, beta_3); }
  BP_SCALAR_FN static int64_t of(int64_t x_0, int64_t y_1, int64_t alpha_2, int64_t beta_3) { return demo_axpby_int64(x_0, y_1, alpha_2, beta_3); }
  BP_SCALAR_FN static uint8_t of(uint8_t x_0, uint8_t y_1, uint8_t alpha_2, uint8_t beta_3) { return demo_axpby_uint8(x_0, y_1, alpha_2, beta_3); }
  BP_SCALAR_FN static uint16_t of(uint16_t x_0, uint16_t y_1, uint16_t alpha_2, uint16_t beta_3) { return demo_axpby_uint16(x_0, y_1, alpha_2, beta_3); }
  BP_SCALAR_FN static uint32_t of(uint32_t x_0, uint32_t y_1, uint32_t alpha_2, uint32_t beta_3) { return demo_axpby_uint32(x_0, y_1, alpha_2, beta_3); }
  BP_SCALAR_FN static uint64_t of(uint64_t x_0, uint64_t y_1, uint64_t alpha_2, uint64_t beta_3) { return demo_axpby_uint64(x_0, y_1, alpha_2, beta_3); }
  BP_SCALAR_FN static float of(float x_0, float y_1, float alpha_2, float beta_3) { return demo_axpby_float32(x_0, y_1, alpha_2, beta_3); }
  BP_SCALAR_FN static double of(double x_0, double y_1, double alpha_2, double beta_3) { return demo_axpby_float64(x_0, y_1, alpha_2, beta_3); }
  template <class... T>
  BP_SCALAR_FN static void of(T...) = delete;
};
struct cube {
  static constexpr unsigned kFaults = 1;
  BP_SCALAR_FN static float of(float x_0) { return demo_cube_float32(x_0); }
  BP_SCALAR_FN static double of(double x_0) { return demo_cube_float64(x_0); }
  template <class... T>
  BP_SCALAR_FN static void of(T...) = delete;
};
}  // namespace demo::scalar

#define DEMO_SCALAR_UNARY_float32_float32_COUNT 1
#define DEMO_SCALAR_UNARY_float32_float32(ROW) \
  ROW(cube, demo_cube_float32, 0)
#define DEMO_SCALAR_UNARY_float64_float64_COUNT 1
#define DEMO_SCALAR_UNARY_float64_float64(ROW) \
  ROW(cube, demo_cube_float64, 0)

#endif  // DEMO_SCALAR_CUH
