// What the elementwise ops of namespace demo do to one element. Made by backplane-codegen from golden.yaml; edit that instead.
//
// NAME_OP_DTYPE(…), and lists of them: NAME_SCALAR_UNARY_DTYPE_RESULT(ROW) is ROW(op, function, number) for each.
#ifndef DEMO_SCALAR_GLSL
#define DEMO_SCALAR_GLSL

#ifndef BP_SCALAR_PRELUDE
#define BP_SCALAR_PRELUDE

#ifndef BP_SCALAR_WITHOUT_INT8
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#endif
#ifndef BP_SCALAR_WITHOUT_INT16
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#endif
#ifndef BP_SCALAR_WITHOUT_INT64
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
float bp_inf_float32() { return uintBitsToFloat(0x7f800000u); }
float bp_nan_float32() { return uintBitsToFloat(0x7fc00000u); }
uint bp_bits_of_float(float x) { return floatBitsToUint(x); }
float bp_float_of_bits(uint bits) { return uintBitsToFloat(bits); }
uint bp_high_bits_float32(float x) { return floatBitsToUint(x); }
float bp_math_power_of_2_float32(int n) { return intBitsToFloat((n + 127) << 23); }
uvec2 bp_math_digits_float32(float x) { return uvec2(floatBitsToUint(x) & 0x7fffffu | 0x800000u, 0u); }
int bp_math_exponent_float32(float x) { return int(floatBitsToUint(x) >> 23 & 255u) - 127; }
#ifndef BP_SCALAR_WITHOUT_FLOAT64
double bp_inf_float64() { return packDouble2x32(uvec2(0u, 0x7ff00000u)); }
double bp_nan_float64() { return packDouble2x32(uvec2(0u, 0x7ff80000u)); }
uint bp_high_bits_float64(double x) { return unpackDouble2x32(x).y; }
double bp_math_power_of_2_float64(int n) { return packDouble2x32(uvec2(0u, uint(n + 1023) << 20)); }
uvec2 bp_math_digits_float64(double x) {
  uvec2 words = unpackDouble2x32(x);
  return uvec2(words.x, words.y & 0xfffffu | 0x100000u);
}
int bp_math_exponent_float64(double x) { return int(unpackDouble2x32(x).y >> 20 & 2047u) - 1023; }
#endif

float bp_float32_of_float16(uint half_bits) {
  uint sign = (half_bits & 0x8000u) << 16, exponent = half_bits >> 10 & 31u, digits = half_bits & 1023u;
  if (exponent == 0u) {
    float size = float(digits) * 5.96046448e-8f;
    return sign != 0u ? -size : size;
  }
  return bp_float_of_bits(sign | (exponent == 31u ? 0x7f800000u : (exponent + 112u) << 23) | digits << 13);
}
uint bp_float16_of_float32(float x) {
  uint bits = bp_bits_of_float(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return sign | 0x7e00u;
  if (size >= 0x477ff000u) return sign | 0x7c00u;
  if (size < 0x38800000u) return sign | uint(roundEven(bp_float_of_bits(size) * 16777216.0f));
  return sign | (size + 0xfffu + (size >> 13 & 1u) - (112u << 23)) >> 13;
}
float bp_float32_of_bfloat16(uint half_bits) { return bp_float_of_bits(half_bits << 16); }
uint bp_bfloat16_of_float32(float x) {
  uint bits = bp_bits_of_float(x);
  return (bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

int bp_floor_divide_of_int32(int x, int y) {
  if (y == int(0)) return int(0);
  if (y == -int(1)) return int(uint(0) - uint(x));
  int quotient = x / y;
  int rest = int(uint(x) - uint(quotient) * uint(y));
  return rest != int(0) && (rest < int(0)) != (y < int(0)) ? quotient - int(1) : quotient;
}
int bp_fmod_of_int32(int x, int y) {
  if (y == int(0)) return int(0);
  if (y == -int(1)) return int(0);
  return int(uint(x) - uint(x / y) * uint(y));
}
int bp_pow_of_int32(int x, int y) {
  uint power = uint(1), base = uint(x);
  for (uint left = uint(y); left != uint(0); left >>= 1) {
    if ((left & uint(1)) != uint(0)) power *= base;
    base *= base;
  }
  return int(power);
}
int bp_bitwise_and_of_int32(int x, int y) { return x & y; }
int bp_bitwise_or_of_int32(int x, int y) { return x | y; }
int bp_bitwise_xor_of_int32(int x, int y) { return x ^ y; }
int bp_bitwise_invert_of_int32(int x) { return ~x; }
int bp_bitwise_left_shift_of_int32(int x, int y, uint bits) {
  return uint(y) < uint(bits) ? int(uint(x) << uint(y)) : int(0);
}
int bp_bitwise_right_shift_of_int32(int x, int y, uint bits) {
  if (uint(y) < uint(bits)) return x >> uint(y);
  return x < int(0) ? ~int(0) : int(0);
}

uint bp_floor_divide_of_uint32(uint x, uint y) {
  if (y == uint(0)) return uint(0);
  
  uint quotient = x / y;
  uint rest = uint(uint(x) - uint(quotient) * uint(y));
  return rest != uint(0) && (rest < uint(0)) != (y < uint(0)) ? quotient - uint(1) : quotient;
}
uint bp_fmod_of_uint32(uint x, uint y) {
  if (y == uint(0)) return uint(0);
  
  return uint(uint(x) - uint(x / y) * uint(y));
}
uint bp_pow_of_uint32(uint x, uint y) {
  uint power = uint(1), base = uint(x);
  for (uint left = uint(y); left != uint(0); left >>= 1) {
    if ((left & uint(1)) != uint(0)) power *= base;
    base *= base;
  }
  return uint(power);
}
uint bp_bitwise_and_of_uint32(uint x, uint y) { return x & y; }
uint bp_bitwise_or_of_uint32(uint x, uint y) { return x | y; }
uint bp_bitwise_xor_of_uint32(uint x, uint y) { return x ^ y; }
uint bp_bitwise_invert_of_uint32(uint x) { return ~x; }
uint bp_bitwise_left_shift_of_uint32(uint x, uint y, uint bits) {
  return uint(y) < uint(bits) ? uint(uint(x) << uint(y)) : uint(0);
}
uint bp_bitwise_right_shift_of_uint32(uint x, uint y, uint bits) {
  if (uint(y) < uint(bits)) return x >> uint(y);
  return x < uint(0) ? ~uint(0) : uint(0);
}
#ifndef BP_SCALAR_WITHOUT_INT64
int64_t bp_floor_divide_of_int64(int64_t x, int64_t y) {
  if (y == int64_t(0)) return int64_t(0);
  if (y == -int64_t(1)) return int64_t(uint64_t(0) - uint64_t(x));
  int64_t quotient = x / y;
  int64_t rest = int64_t(uint64_t(x) - uint64_t(quotient) * uint64_t(y));
  return rest != int64_t(0) && (rest < int64_t(0)) != (y < int64_t(0)) ? quotient - int64_t(1) : quotient;
}
int64_t bp_fmod_of_int64(int64_t x, int64_t y) {
  if (y == int64_t(0)) return int64_t(0);
  if (y == -int64_t(1)) return int64_t(0);
  return int64_t(uint64_t(x) - uint64_t(x / y) * uint64_t(y));
}
int64_t bp_pow_of_int64(int64_t x, int64_t y) {
  uint64_t power = uint64_t(1), base = uint64_t(x);
  for (uint64_t left = uint64_t(y); left != uint64_t(0); left >>= 1) {
    if ((left & uint64_t(1)) != uint64_t(0)) power *= base;
    base *= base;
  }
  return int64_t(power);
}
int64_t bp_bitwise_and_of_int64(int64_t x, int64_t y) { return x & y; }
int64_t bp_bitwise_or_of_int64(int64_t x, int64_t y) { return x | y; }
int64_t bp_bitwise_xor_of_int64(int64_t x, int64_t y) { return x ^ y; }
int64_t bp_bitwise_invert_of_int64(int64_t x) { return ~x; }
int64_t bp_bitwise_left_shift_of_int64(int64_t x, int64_t y, uint bits) {
  return uint64_t(y) < uint64_t(bits) ? int64_t(uint64_t(x) << uint(y)) : int64_t(0);
}
int64_t bp_bitwise_right_shift_of_int64(int64_t x, int64_t y, uint bits) {
  if (uint64_t(y) < uint64_t(bits)) return x >> uint(y);
  return x < int64_t(0) ? ~int64_t(0) : int64_t(0);
}

uint64_t bp_floor_divide_of_uint64(uint64_t x, uint64_t y) {
  if (y == uint64_t(0)) return uint64_t(0);
  
  uint64_t quotient = x / y;
  uint64_t rest = uint64_t(uint64_t(x) - uint64_t(quotient) * uint64_t(y));
  return rest != uint64_t(0) && (rest < uint64_t(0)) != (y < uint64_t(0)) ? quotient - uint64_t(1) : quotient;
}
uint64_t bp_fmod_of_uint64(uint64_t x, uint64_t y) {
  if (y == uint64_t(0)) return uint64_t(0);
  
  return uint64_t(uint64_t(x) - uint64_t(x / y) * uint64_t(y));
}
uint64_t bp_pow_of_uint64(uint64_t x, uint64_t y) {
  uint64_t power = uint64_t(1), base = uint64_t(x);
  for (uint64_t left = uint64_t(y); left != uint64_t(0); left >>= 1) {
    if ((left & uint64_t(1)) != uint64_t(0)) power *= base;
    base *= base;
  }
  return uint64_t(power);
}
uint64_t bp_bitwise_and_of_uint64(uint64_t x, uint64_t y) { return x & y; }
uint64_t bp_bitwise_or_of_uint64(uint64_t x, uint64_t y) { return x | y; }
uint64_t bp_bitwise_xor_of_uint64(uint64_t x, uint64_t y) { return x ^ y; }
uint64_t bp_bitwise_invert_of_uint64(uint64_t x) { return ~x; }
uint64_t bp_bitwise_left_shift_of_uint64(uint64_t x, uint64_t y, uint bits) {
  return uint64_t(y) < uint64_t(bits) ? uint64_t(uint64_t(x) << uint(y)) : uint64_t(0);
}
uint64_t bp_bitwise_right_shift_of_uint64(uint64_t x, uint64_t y, uint bits) {
  if (uint64_t(y) < uint64_t(bits)) return x >> uint(y);
  return x < uint64_t(0) ? ~uint64_t(0) : uint64_t(0);
}
#endif

int bp_int32_of_float32(float x) {
  return x >= float(-2147483648.0f) && x < float(2147483648.0f) ? int(x) : int(-2147483647 - 1);
}

uint bp_uint32_of_float32(float x) {
  if (!(x >= float(-9223372036854775808.0f) && x < float(9223372036854775808.0f))) return 0u;
  float size = floor(x < float(0.0f) ? -x : x);
  uint low = uint(size - floor(size * float(2.3283064365386963e-10f)) * float(4294967296.0f));
  return x < float(0.0f) ? 0u - low : low;
}
#ifndef BP_SCALAR_WITHOUT_INT64
int64_t bp_int64_of_float32(float x) {
  return x >= float(-9223372036854775808.0f) && x < float(9223372036854775808.0f) ? int64_t(x) : int64_t(-9223372036854775807l - 1);
}
uint64_t bp_uint64_of_float32(float x) {
  if (!(x >= float(9223372036854775808.0f))) return uint64_t(bp_int64_of_float32(x));
  return x < float(18446744073709551616.0f) ? uint64_t(x) : uint64_t(int64_t(-9223372036854775807l - 1));
}
#endif
#ifndef BP_SCALAR_WITHOUT_FLOAT64
int bp_int32_of_float64(double x) {
  return x >= double(-2147483648.0lf) && x < double(2147483648.0lf) ? int(x) : int(-2147483647 - 1);
}

uint bp_uint32_of_float64(double x) {
  if (!(x >= double(-9223372036854775808.0lf) && x < double(9223372036854775808.0lf))) return 0u;
  double size = floor(x < double(0.0lf) ? -x : x);
  uint low = uint(size - floor(size * double(2.3283064365386963e-10lf)) * double(4294967296.0lf));
  return x < double(0.0lf) ? 0u - low : low;
}
#ifndef BP_SCALAR_WITHOUT_INT64
int64_t bp_int64_of_float64(double x) {
  return x >= double(-9223372036854775808.0lf) && x < double(9223372036854775808.0lf) ? int64_t(x) : int64_t(-9223372036854775807l - 1);
}
uint64_t bp_uint64_of_float64(double x) {
  if (!(x >= double(9223372036854775808.0lf))) return uint64_t(bp_int64_of_float64(x));
  return x < double(18446744073709551616.0lf) ? uint64_t(x) : uint64_t(int64_t(-9223372036854775807l - 1));
}
#endif
#endif

uint bp_math_two_over_pi(uint word) {
  const uint words[39] = uint[39](
    0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
    0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u,
    0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu,
    0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u,
    0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u);
  return words[min(word, 38u)];
}
// The nearest multiple of pi / 2 to digits * 2^exponent, and how far that is from it in units of pi / 2: `fraction` (low
// word, high word) * 2^(-64 - zeros), above it or below.
int bp_math_far_turn(uvec2 digits, int exponent, out uvec2 fraction, out int zeros, out bool is_above) {
  uint first = uint(exponent + 62), word = first >> 5, shift = first & 31u;
  uint product[6], window[6];
  uint carry = 0u, high, low;
  for (int j = 5; j >= 0; --j) {
    uint k = word + uint(j);
    window[j] = bp_math_two_over_pi(k);
    if (shift != 0u) window[j] = window[j] << shift | bp_math_two_over_pi(k + 1u) >> (32u - shift);
    umulExtended(digits.x, window[j], high, low);
    low += carry;
    carry = high + uint(low < carry);
    product[j] = low;
  }
  carry = 0u;
  for (int j = 5; j > 0; --j) {
    umulExtended(digits.y, window[j], high, low);
    low += carry;
    carry = high + uint(low < carry);
    product[j - 1] += low;
    carry += uint(product[j - 1] < low);
  }
  int quadrant = int(product[0] >> 30);
  for (int j = 0; j < 5; ++j) product[j] = product[j] << 2 | product[j + 1] >> 30;
  product[5] <<= 2;
  is_above = product[0] >> 31 == 0u;
  if (!is_above) {
    ++quadrant;
    carry = 1u;
    for (int j = 5; j >= 0; --j) {
      product[j] = ~product[j] + carry;
      carry = uint(carry == 1u && product[j] == 0u);
    }
  }
  int start = 0;
  while (start < 3 && product[start] == 0u) ++start;
  int left = 31 - findMSB(product[start]);
  fraction = uvec2(product[start + 1], product[start]);
  if (left != 0) {
    fraction = fraction << uint(left) | uvec2(product[start + 2], product[start + 1]) >> uint(32 - left);
  }
  zeros = 32 * start + left;
  return quadrant;
}

float bp_math_round_float32(float x) { return roundEven(x); }

float bp_math_scale_float32(float x, int n) {
  int half_way = n / 2;
  return x * bp_math_power_of_2_float32(half_way) * bp_math_power_of_2_float32(n - half_way);
}
int bp_math_any_exponent_float32(float x) {
  return x < 1.17549435e-38f ? bp_math_exponent_float32(x * 33554432.0f) - 25 : bp_math_exponent_float32(x);
}
float bp_math_copysign_float32(float x, float y) {
  float size = abs(x);
  return bp_high_bits_float32(y) >> 31 != 0u ? -size : size;
}
float bp_math_exp_float32(float x) {
  if (!(x <= 88.7228394f)) return x != x ? x : bp_inf_float32();
  if (x < (-104.0f)) return 0.0f;
  precise float n = bp_math_round_float32(x * 1.44269504f);
  precise float r = (x - n * 0.692382812f) - n * 0.00076436806f;
  precise float power = (1.0f + r * (1.0f + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * (0.00833333333f + r * (0.00138888889f + r * (0.000198412698f + r * 2.48015873e-05f))))))));
  return bp_math_scale_float32(power, int(n));
}
float bp_math_expm1_float32(float x) {
  if (!(abs(x) < 0.35f)) return bp_math_exp_float32(x) - 1.0f;
  precise float r = x;
  precise float rest = x * x * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * (0.00833333333f + r * (0.00138888889f + r * (0.000198412698f + r * (2.48015873e-05f + r * 2.75573192e-06f)))))));
  return x == 0.0f ? x : x + rest;
}
float bp_math_tanh_float32(float x) {
  precise float e = bp_math_expm1_float32(2.0f * abs(x));
  return bp_math_copysign_float32(abs(x) > 22.0f ? 1.0f : e / (e + 2.0f), x);
}
// log(x) of a positive, finite x as a sum of two.
void bp_math_log_parts_float32(float x, out float high, out float low) {
  int e = 0;
  if (x < 1.17549435e-38f) {
    x *= 33554432.0f;
    e = -25;
  }
  int exponent = bp_math_exponent_float32(x);
  e += exponent;
  precise float m = bp_math_scale_float32(x, -exponent);
  if (m > 1.41421356f) {
    m *= 0.5f;
    e += 1;
  }
  // s = (m - 1) / (m + 1), and what its rounding left out, by Dekker's product.
  precise float f = m - 1.0f, d = m + 1.0f;
  precise float d_low = m - (d - 1.0f);
  precise float s = f / d;
  precise float c = 4097.0f * s, s_top = c - (c - s), s_end = s - s_top;
  precise float k = 4097.0f * d, d_top = k - (k - d), d_end = d - d_top;
  precise float p = s * d;
  precise float p_low = ((s_top * d_top - p) + s_top * d_end + s_end * d_top) + s_end * d_end;
  precise float s_low = (((f - p) - p_low) - s * d_low) / d;
  precise float z = s * s;
  precise float tail = s * z * (0.666666667f + z * (0.4f + z * (0.285714286f + z * (0.222222222f + z * (0.181818182f + z * 0.153846154f)))));
  precise float a = float(e) * 0.692382812f, b = 2.0f * s;
  precise float sum = a + b;
  precise float rest = (b - (sum - a)) + (2.0f * s_low + tail + float(e) * 0.00076436806f);
  precise float top = sum + rest;
  precise float end = rest - (top - sum);
  high = top;
  low = end;
}
float bp_math_log_float32(float x) {
  if (!(x > 0.0f)) return x == 0.0f ? -bp_inf_float32() : bp_nan_float32();
  if (x == bp_inf_float32()) return x;
  float high, low;
  bp_math_log_parts_float32(x, high, low);
  return high;
}
float bp_math_log1p_float32(float x) {
  precise float u = 1.0f + x;
  if (u == 1.0f || u == bp_inf_float32()) return x;
  precise float lost = u - 1.0f;
  return bp_math_log_float32(u) * (x / lost);
}
float bp_math_pow_float32(float x, float y) {
  if (y == 0.0f || x == 1.0f) return 1.0f;
  if (x != x || y != y) return bp_nan_float32();
  float size = abs(x);
  bool whole = floor(y) == y, odd = whole && floor(y * 0.5f) != y * 0.5f;
  bool below = bp_high_bits_float32(x) >> 31 != 0u;
  if (abs(y) == bp_inf_float32()) return size == 1.0f ? 1.0f : (size > 1.0f) == (y > 0.0f) ? y * y : 0.0f;
  if (size == 0.0f || size == bp_inf_float32()) {
    float limit = (size == 0.0f) == (y > 0.0f) ? 0.0f : bp_inf_float32();
    return below && odd ? -limit : limit;
  }
  if (below && !whole) return bp_nan_float32();
  float high, low;
  bp_math_log_parts_float32(size, high, low);
  precise float w = clamp(y, -1e+10f, 1e+10f);
  precise float c = 4097.0f * w, w_top = c - (c - w), w_end = w - w_top;
  precise float k = 4097.0f * high, h_top = k - (k - high), h_end = high - h_top;
  precise float p = w * high;
  precise float p_low = ((w_top * h_top - p) + w_top * h_end + w_end * h_top) + w_end * h_end + w * low;
  precise float power = bp_math_exp_float32(p);
  if (power != bp_inf_float32()) power = power + power * p_low;
  return below && odd ? -power : power;
}

// x less the nearest multiple of pi / 2, and that multiple modulo 4.
int bp_math_quadrant_float32(float x, out float rest) {
  if (x != x || abs(x) == bp_inf_float32()) {
    rest = bp_nan_float32();
    return 0;
  }
  if (abs(x) < 8192.0f) {
    precise float n = bp_math_round_float32(x * 0.636619772367581343f);
    precise float r = (((x - n * 1.5703125f) - n * 0.000483751297f) - n * 7.54953362e-08f) - n * 2.56334407e-12f;
    rest = r;
    return int(n - 4.0f * floor(n * 0.25f));
  }
  uvec2 fraction;
  int zeros;
  bool is_above;
  int quadrant = bp_math_far_turn(bp_math_digits_float32(x), bp_math_exponent_float32(x) - 23, fraction, zeros, is_above);
  float size = (float(fraction.y) + float(fraction.x) * 2.3283064365386962890625e-10f) * 1.57079632679489662f;
  size *= bp_math_power_of_2_float32(-32 - zeros);
  bool below = bp_high_bits_float32(x) >> 31 != 0u;
  rest = below == is_above ? -size : size;
  return (below ? -quadrant : quadrant) & 3;
}

float bp_math_turned_float32(float x, int quarters) {
  float r;
  int quadrant = (bp_math_quadrant_float32(x, r) + quarters) & 3;
  if (r != r || x == 0.0f) return quarters == 0 ? (r != r ? bp_nan_float32() : x) : (r != r ? r : 1.0f);
  precise float z = r * r;
  precise float sine = r + r * z * ((-0.166666667f) + z * (0.00833333333f + z * ((-0.000198412698f) + z * (2.75573192e-06f + z * (-2.50521084e-08f)))));
  precise float cosine = 1.0f + z * ((-0.5f) + z * (0.0416666667f + z * ((-0.00138888889f) + z * (2.48015873e-05f + z * (-2.75573192e-07f)))));
  float size = (quadrant & 1) == 0 ? sine : cosine;
  return quadrant < 2 ? size : -size;
}
float bp_math_sin_float32(float x) { return bp_math_turned_float32(x, 0); }
float bp_math_cos_float32(float x) { return bp_math_turned_float32(x, 1); }
float bp_math_atan_float32(float x) {
  float size = abs(x);
  bool beyond = size > 1.0f;
  precise float t = beyond ? 1.0f / size : size;
  bool far = t > 0.414213562373095049f;
  precise float u = far ? (t - 1.0f) / (t + 1.0f) : t;
  precise float z = u * u;
  precise float angle = u - u * z * (0.333333333f + z * ((-0.2f) + z * (0.142857143f + z * ((-0.111111111f) + z * (0.0909090909f + z * ((-0.0769230769f) + z * (0.0666666667f + z * ((-0.0588235294f) + z * (0.0526315789f + z * (-0.0476190476f))))))))));
  if (far) angle = 0.785398163397448310f + angle;
  if (beyond) angle = 1.57079632679489662f - angle;
  return bp_math_copysign_float32(angle, x);
}
float bp_math_atan2_float32(float y, float x) {
  if (x != x || y != y) return bp_nan_float32();
  float a = abs(y), b = abs(x);
  bool left = bp_high_bits_float32(x) >> 31 != 0u;
  float ratio = a == b ? 1.0f : min(a, b) / max(a, b);
  precise float angle = a == 0.0f && b == 0.0f ? 0.0f : bp_math_atan_float32(ratio);
  if (a > b) angle = 1.57079632679489662f - angle;
  if (left) angle = 3.14159265358979324f - angle;
  return bp_math_copysign_float32(angle, y);
}
float bp_math_hypot_float32(float x, float y) {
  float a = abs(x), b = abs(y);
  if (a == bp_inf_float32() || b == bp_inf_float32()) return bp_inf_float32();
  if (x != x || y != y) return bp_nan_float32();
  float most = max(a, b);
  if (most == 0.0f) return 0.0f;
  precise float ratio = min(a, b) / most;
  return most * sqrt(1.0f + ratio * ratio);
}
float bp_math_fmod_float32(float x, float y) {
  float rest = abs(x), b = abs(y);
  if (!(rest < bp_inf_float32()) || b != b || b == 0.0f) return bp_nan_float32();
  if (b == bp_inf_float32()) return x;
  while (rest >= b) {
    int n = bp_math_any_exponent_float32(rest) - bp_math_any_exponent_float32(b);
    precise float multiple = bp_math_scale_float32(bp_math_scale_float32(b, n / 2), n - n / 2);
    if (multiple > rest) multiple *= 0.5f;
    precise float left = rest - multiple;
    rest = left;
  }
  return bp_math_copysign_float32(rest, x);
}
// Near 0 by the series whose terms are all of one sign; farther by the continued fraction of the complement.
float bp_math_erf_float32(float x) {
  float a = abs(x);
  if (x != x) return x;
  if (a > 6.0f) return bp_math_copysign_float32(1.0f, x);
  precise float square = a * a;
  precise float result = 0.0f;
  if (a < 2.0f) {
    precise float term = 1.0f, sum = 1.0f;
    for (int k = 1; k < 28; ++k) {
      term *= 2.0f * square / float(2 * k + 1);
      sum += term;
    }
    result = 1.12837916709551257f * a * sum * bp_math_exp_float32(-square);
  } else {
    precise float fraction = a;
    for (int k = 20; k > 0; --k) fraction = a + 0.5f * float(k) / fraction;
    result = 1.0f - bp_math_exp_float32(-square) * 0.564189583547756287f / fraction;
  }
  return bp_math_copysign_float32(result, x);
}
#ifndef BP_SCALAR_WITHOUT_FLOAT64
double bp_math_round_float64(double x) {
  double below = floor(x);
  if (below == x) return x;
  double rest = x - below, above = below + 1.0lf;
  double nearest = rest > 0.5lf || (rest == 0.5lf && floor(0.5lf * below) * 2.0lf != below) ? above : below;
  return x < 0.0lf ? -abs(nearest) : nearest;
}

double bp_math_scale_float64(double x, int n) {
  int half_way = n / 2;
  return x * bp_math_power_of_2_float64(half_way) * bp_math_power_of_2_float64(n - half_way);
}
int bp_math_any_exponent_float64(double x) {
  return x < 2.2250738585072014e-308lf ? bp_math_exponent_float64(x * 18014398509481984.0lf) - 54 : bp_math_exponent_float64(x);
}
double bp_math_copysign_float64(double x, double y) {
  double size = abs(x);
  return bp_high_bits_float64(y) >> 31 != 0u ? -size : size;
}
double bp_math_exp_float64(double x) {
  if (!(x <= 709.78271289338397lf)) return x != x ? x : bp_inf_float64();
  if (x < (-746.0lf)) return 0.0lf;
  precise double n = bp_math_round_float64(x * 1.4426950408889634lf);
  precise double r = (x - n * 0.69314718036912382lf) - n * 1.9082149292705877e-10lf;
  precise double power = (1.0lf + r * (1.0lf + r * (0.5lf + r * (0.16666666666666666lf + r * (0.041666666666666664lf + r * (0.0083333333333333332lf + r * (0.0013888888888888889lf + r * (0.00019841269841269841lf + r * (2.4801587301587302e-05lf + r * (2.7557319223985893e-06lf + r * (2.7557319223985888e-07lf + r * (2.505210838544172e-08lf + r * (2.08767569878681e-09lf + r * (1.6059043836821613e-10lf + r * 1.1470745597729726e-11lf))))))))))))));
  return bp_math_scale_float64(power, int(n));
}
double bp_math_expm1_float64(double x) {
  if (!(abs(x) < 0.35lf)) return bp_math_exp_float64(x) - 1.0lf;
  precise double r = x;
  precise double rest = x * x * (0.5lf + r * (0.16666666666666666lf + r * (0.041666666666666664lf + r * (0.0083333333333333332lf + r * (0.0013888888888888889lf + r * (0.00019841269841269841lf + r * (2.4801587301587302e-05lf + r * (2.7557319223985893e-06lf + r * (2.7557319223985888e-07lf + r * (2.505210838544172e-08lf + r * (2.08767569878681e-09lf + r * (1.6059043836821613e-10lf + r * (1.1470745597729726e-11lf + r * 7.6471637318198164e-13lf)))))))))))));
  return x == 0.0lf ? x : x + rest;
}
double bp_math_tanh_float64(double x) {
  precise double e = bp_math_expm1_float64(2.0lf * abs(x));
  return bp_math_copysign_float64(abs(x) > 22.0lf ? 1.0lf : e / (e + 2.0lf), x);
}
// log(x) of a positive, finite x as a sum of two.
void bp_math_log_parts_float64(double x, out double high, out double low) {
  int e = 0;
  if (x < 2.2250738585072014e-308lf) {
    x *= 18014398509481984.0lf;
    e = -54;
  }
  int exponent = bp_math_exponent_float64(x);
  e += exponent;
  precise double m = bp_math_scale_float64(x, -exponent);
  if (m > 1.41421356lf) {
    m *= 0.5lf;
    e += 1;
  }
  // s = (m - 1) / (m + 1), and what its rounding left out, by Dekker's product.
  precise double f = m - 1.0lf, d = m + 1.0lf;
  precise double d_low = m - (d - 1.0lf);
  precise double s = f / d;
  precise double c = 134217729.0lf * s, s_top = c - (c - s), s_end = s - s_top;
  precise double k = 134217729.0lf * d, d_top = k - (k - d), d_end = d - d_top;
  precise double p = s * d;
  precise double p_low = ((s_top * d_top - p) + s_top * d_end + s_end * d_top) + s_end * d_end;
  precise double s_low = (((f - p) - p_low) - s * d_low) / d;
  precise double z = s * s;
  precise double tail = s * z * (0.66666666666666663lf + z * (0.40000000000000002lf + z * (0.2857142857142857lf + z * (0.22222222222222221lf + z * (0.18181818181818182lf + z * (0.15384615384615385lf + z * (0.13333333333333333lf + z * (0.11764705882352941lf + z * (0.10526315789473684lf + z * (0.095238095238095233lf + z * (0.086956521739130432lf + z * 0.080000000000000002lf)))))))))));
  precise double a = double(e) * 0.69314718036912382lf, b = 2.0lf * s;
  precise double sum = a + b;
  precise double rest = (b - (sum - a)) + (2.0lf * s_low + tail + double(e) * 1.9082149292705877e-10lf);
  precise double top = sum + rest;
  precise double end = rest - (top - sum);
  high = top;
  low = end;
}
double bp_math_log_float64(double x) {
  if (!(x > 0.0lf)) return x == 0.0lf ? -bp_inf_float64() : bp_nan_float64();
  if (x == bp_inf_float64()) return x;
  double high, low;
  bp_math_log_parts_float64(x, high, low);
  return high;
}
double bp_math_log1p_float64(double x) {
  precise double u = 1.0lf + x;
  if (u == 1.0lf || u == bp_inf_float64()) return x;
  precise double lost = u - 1.0lf;
  return bp_math_log_float64(u) * (x / lost);
}
double bp_math_pow_float64(double x, double y) {
  if (y == 0.0lf || x == 1.0lf) return 1.0lf;
  if (x != x || y != y) return bp_nan_float64();
  double size = abs(x);
  bool whole = floor(y) == y, odd = whole && floor(y * 0.5lf) != y * 0.5lf;
  bool below = bp_high_bits_float64(x) >> 31 != 0u;
  if (abs(y) == bp_inf_float64()) return size == 1.0lf ? 1.0lf : (size > 1.0lf) == (y > 0.0lf) ? y * y : 0.0lf;
  if (size == 0.0lf || size == bp_inf_float64()) {
    double limit = (size == 0.0lf) == (y > 0.0lf) ? 0.0lf : bp_inf_float64();
    return below && odd ? -limit : limit;
  }
  if (below && !whole) return bp_nan_float64();
  double high, low;
  bp_math_log_parts_float64(size, high, low);
  precise double w = clamp(y, -1e+20lf, 1e+20lf);
  precise double c = 134217729.0lf * w, w_top = c - (c - w), w_end = w - w_top;
  precise double k = 134217729.0lf * high, h_top = k - (k - high), h_end = high - h_top;
  precise double p = w * high;
  precise double p_low = ((w_top * h_top - p) + w_top * h_end + w_end * h_top) + w_end * h_end + w * low;
  precise double power = bp_math_exp_float64(p);
  if (power != bp_inf_float64()) power = power + power * p_low;
  return below && odd ? -power : power;
}

// x less the nearest multiple of pi / 2, and that multiple modulo 4.
int bp_math_quadrant_float64(double x, out double rest) {
  if (x != x || abs(x) == bp_inf_float64()) {
    rest = bp_nan_float64();
    return 0;
  }
  if (abs(x) < 1048576.0lf) {
    precise double n = bp_math_round_float64(x * 0.636619772367581343lf);
    precise double r = (((x - n * 1.5707963267341256lf) - n * 6.077100506303966e-11lf) - n * 2.0222662487959506e-21lf) - n * 1.0085854035872483e-37lf;
    rest = r;
    return int(n - 4.0lf * floor(n * 0.25lf));
  }
  uvec2 fraction;
  int zeros;
  bool is_above;
  int quadrant = bp_math_far_turn(bp_math_digits_float64(x), bp_math_exponent_float64(x) - 52, fraction, zeros, is_above);
  double size = (double(fraction.y) + double(fraction.x) * 2.3283064365386962890625e-10lf) * 1.57079632679489662lf;
  size *= bp_math_power_of_2_float64(-32 - zeros);
  bool below = bp_high_bits_float64(x) >> 31 != 0u;
  rest = below == is_above ? -size : size;
  return (below ? -quadrant : quadrant) & 3;
}

double bp_math_turned_float64(double x, int quarters) {
  double r;
  int quadrant = (bp_math_quadrant_float64(x, r) + quarters) & 3;
  if (r != r || x == 0.0lf) return quarters == 0 ? (r != r ? bp_nan_float64() : x) : (r != r ? r : 1.0lf);
  precise double z = r * r;
  precise double sine = r + r * z * ((-0.16666666666666666lf) + z * (0.0083333333333333332lf + z * ((-0.00019841269841269841lf) + z * (2.7557319223985893e-06lf + z * ((-2.505210838544172e-08lf) + z * (1.6059043836821613e-10lf + z * ((-7.6471637318198164e-13lf) + z * (2.8114572543455198e-15lf + z * (-8.220635246624328e-18lf)))))))));
  precise double cosine = 1.0lf + z * ((-0.5lf) + z * (0.041666666666666664lf + z * ((-0.0013888888888888889lf) + z * (2.4801587301587302e-05lf + z * ((-2.7557319223985888e-07lf) + z * (2.08767569878681e-09lf + z * ((-1.1470745597729726e-11lf) + z * (4.7794773323873846e-14lf + z * (-1.5619206968586223e-16lf)))))))));
  double size = (quadrant & 1) == 0 ? sine : cosine;
  return quadrant < 2 ? size : -size;
}
double bp_math_sin_float64(double x) { return bp_math_turned_float64(x, 0); }
double bp_math_cos_float64(double x) { return bp_math_turned_float64(x, 1); }
double bp_math_atan_float64(double x) {
  double size = abs(x);
  bool beyond = size > 1.0lf;
  precise double t = beyond ? 1.0lf / size : size;
  bool far = t > 0.414213562373095049lf;
  precise double u = far ? (t - 1.0lf) / (t + 1.0lf) : t;
  precise double z = u * u;
  precise double angle = u - u * z * (0.33333333333333331lf + z * ((-0.20000000000000001lf) + z * (0.14285714285714285lf + z * ((-0.1111111111111111lf) + z * (0.090909090909090912lf + z * ((-0.076923076923076927lf) + z * (0.066666666666666666lf + z * ((-0.058823529411764705lf) + z * (0.052631578947368418lf + z * ((-0.047619047619047616lf) + z * (0.043478260869565216lf + z * ((-0.040000000000000001lf) + z * (0.037037037037037035lf + z * ((-0.034482758620689655lf) + z * (0.032258064516129031lf + z * ((-0.030303030303030304lf) + z * (0.028571428571428571lf + z * ((-0.027027027027027029lf) + z * (0.02564102564102564lf + z * ((-0.024390243902439025lf) + z * 0.023255813953488372lf))))))))))))))))))));
  if (far) angle = 0.785398163397448310lf + angle;
  if (beyond) angle = 1.57079632679489662lf - angle;
  return bp_math_copysign_float64(angle, x);
}
double bp_math_atan2_float64(double y, double x) {
  if (x != x || y != y) return bp_nan_float64();
  double a = abs(y), b = abs(x);
  bool left = bp_high_bits_float64(x) >> 31 != 0u;
  double ratio = a == b ? 1.0lf : min(a, b) / max(a, b);
  precise double angle = a == 0.0lf && b == 0.0lf ? 0.0lf : bp_math_atan_float64(ratio);
  if (a > b) angle = 1.57079632679489662lf - angle;
  if (left) angle = 3.14159265358979324lf - angle;
  return bp_math_copysign_float64(angle, y);
}
double bp_math_hypot_float64(double x, double y) {
  double a = abs(x), b = abs(y);
  if (a == bp_inf_float64() || b == bp_inf_float64()) return bp_inf_float64();
  if (x != x || y != y) return bp_nan_float64();
  double most = max(a, b);
  if (most == 0.0lf) return 0.0lf;
  precise double ratio = min(a, b) / most;
  return most * sqrt(1.0lf + ratio * ratio);
}
double bp_math_fmod_float64(double x, double y) {
  double rest = abs(x), b = abs(y);
  if (!(rest < bp_inf_float64()) || b != b || b == 0.0lf) return bp_nan_float64();
  if (b == bp_inf_float64()) return x;
  while (rest >= b) {
    int n = bp_math_any_exponent_float64(rest) - bp_math_any_exponent_float64(b);
    precise double multiple = bp_math_scale_float64(bp_math_scale_float64(b, n / 2), n - n / 2);
    if (multiple > rest) multiple *= 0.5lf;
    precise double left = rest - multiple;
    rest = left;
  }
  return bp_math_copysign_float64(rest, x);
}
// Near 0 by the series whose terms are all of one sign; farther by the continued fraction of the complement.
double bp_math_erf_float64(double x) {
  double a = abs(x);
  if (x != x) return x;
  if (a > 6.0lf) return bp_math_copysign_float64(1.0lf, x);
  precise double square = a * a;
  precise double result = 0.0lf;
  if (a < 2.0lf) {
    precise double term = 1.0lf, sum = 1.0lf;
    for (int k = 1; k < 44; ++k) {
      term *= 2.0lf * square / double(2 * k + 1);
      sum += term;
    }
    result = 1.12837916709551257lf * a * sum * bp_math_exp_float64(-square);
  } else {
    precise double fraction = a;
    for (int k = 60; k > 0; --k) fraction = a + 0.5lf * double(k) / fraction;
    result = 1.0lf - bp_math_exp_float64(-square) * 0.564189583547756287lf / fraction;
  }
  return bp_math_copysign_float64(result, x);
}
#endif
#endif  // BP_SCALAR_PRELUDE
#if !defined(BP_SCALAR_WITHOUT_INT8)
int8_t demo_axpby_int8(int8_t x_0, int8_t y_1, int8_t alpha_2, int8_t beta_3) {
  return int8_t(uint(int8_t(uint(x_0) * uint(alpha_2))) + uint(int8_t(uint(y_1) * uint(beta_3))));
}
#endif
#if !defined(BP_SCALAR_WITHOUT_INT16)
int16_t demo_axpby_int16(int16_t x_0, int16_t y_1, int16_t alpha_2, int16_t beta_3) {
  return int16_t(uint(int16_t(uint(x_0) * uint(alpha_2))) + uint(int16_t(uint(y_1) * uint(beta_3))));
}
#endif
int demo_axpby_int32(int x_0, int y_1, int alpha_2, int beta_3) {
  return int(uint(int(uint(x_0) * uint(alpha_2))) + uint(int(uint(y_1) * uint(beta_3))));
}
#if !defined(BP_SCALAR_WITHOUT_INT64)
int64_t demo_axpby_int64(int64_t x_0, int64_t y_1, int64_t alpha_2, int64_t beta_3) {
  return int64_t(uint64_t(int64_t(uint64_t(x_0) * uint64_t(alpha_2))) + uint64_t(int64_t(uint64_t(y_1) * uint64_t(beta_3))));
}
#endif
#if !defined(BP_SCALAR_WITHOUT_INT8)
uint8_t demo_axpby_uint8(uint8_t x_0, uint8_t y_1, uint8_t alpha_2, uint8_t beta_3) {
  return uint8_t(uint(uint8_t(uint(x_0) * uint(alpha_2))) + uint(uint8_t(uint(y_1) * uint(beta_3))));
}
#endif
#if !defined(BP_SCALAR_WITHOUT_INT16)
uint16_t demo_axpby_uint16(uint16_t x_0, uint16_t y_1, uint16_t alpha_2, uint16_t beta_3) {
  return uint16_t(uint(uint16_t(uint(x_0) * uint(alpha_2))) + uint(uint16_t(uint(y_1) * uint(beta_3))));
}
#endif
uint demo_axpby_uint32(uint x_0, uint y_1, uint alpha_2, uint beta_3) {
  return uint(uint(uint(uint(x_0) * uint(alpha_2))) + uint(uint(uint(y_1) * uint(beta_3))));
}
#if !defined(BP_SCALAR_WITHOUT_INT64)
uint64_t demo_axpby_uint64(uint64_t x_0, uint64_t y_1, uint64_t alpha_2, uint64_t beta_3) {
  return uint64_t(uint64_t(uint64_t(uint64_t(x_0) * uint64_t(alpha_2))) + uint64_t(uint64_t(uint64_t(y_1) * uint64_t(beta_3))));
}
#endif
float demo_axpby_float32(float x_0, float y_1, float alpha_2, float beta_3) {
  precise float result = ((x_0 * alpha_2) + (y_1 * beta_3));
  return result;
}
#if !defined(BP_SCALAR_WITHOUT_FLOAT64)
double demo_axpby_float64(double x_0, double y_1, double alpha_2, double beta_3) {
  precise double result = ((x_0 * alpha_2) + (y_1 * beta_3));
  return result;
}
#endif
float demo_cube_float32(float x_0) {
  precise float s_1 = (x_0 * x_0);
  precise float result = (x_0 * s_1);
  return result;
}
#if !defined(BP_SCALAR_WITHOUT_FLOAT64)
double demo_cube_float64(double x_0) {
  precise double s_1 = (x_0 * x_0);
  precise double result = (x_0 * s_1);
  return result;
}
#endif

#define DEMO_SCALAR_UNARY_float32_float32_COUNT 1
#define DEMO_SCALAR_UNARY_float32_float32(ROW) \
  ROW(cube, demo_cube_float32, 0)
#define DEMO_SCALAR_UNARY_float64_float64_COUNT 1
#define DEMO_SCALAR_UNARY_float64_float64(ROW) \
  ROW(cube, demo_cube_float64, 0)

#endif  // DEMO_SCALAR_GLSL
