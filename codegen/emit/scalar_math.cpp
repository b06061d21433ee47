// The text that every header of scalar functions begins with; see scalar_dialects.hpp. $X is replaced for each type.
#include "emit/scalar_dialects.hpp"
#include "emit/scalar_glsl_angles.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

// Integers of 32 and 64 bits: $I of itself, $U unsigned, $(I) and $(U) casts.
constexpr std::string_view kIntegers = R"(
$fn$I bp_floor_divide_of_$N($I x, $I y) {
  if (y == $(I)(0)) return $(I)(0);
  $NEGATIVE_ONE
  $I quotient = x / y;
  $I rest = $(I)($(U)(x) - $(U)(quotient) * $(U)(y));
  return rest != $(I)(0) && (rest < $(I)(0)) != (y < $(I)(0)) ? quotient - $(I)(1) : quotient;
}
$fn$I bp_fmod_of_$N($I x, $I y) {
  if (y == $(I)(0)) return $(I)(0);
  $NO_REST
  return $(I)($(U)(x) - $(U)(x / y) * $(U)(y));
}
$fn$I bp_pow_of_$N($I x, $I y) {
  $U power = $(U)(1), base = $(U)(x);
  for ($U left = $(U)(y); left != $(U)(0); left >>= 1) {
    if ((left & $(U)(1)) != $(U)(0)) power *= base;
    base *= base;
  }
  return $(I)(power);
}
$fn$I bp_bitwise_and_of_$N($I x, $I y) { return x & y; }
$fn$I bp_bitwise_or_of_$N($I x, $I y) { return x | y; }
$fn$I bp_bitwise_xor_of_$N($I x, $I y) { return x ^ y; }
$fn$I bp_bitwise_invert_of_$N($I x) { return ~x; }
$fn$I bp_bitwise_left_shift_of_$N($I x, $I y, $W bits) {
  return $(U)(y) < $(U)(bits) ? $(I)($(U)(x) << $(W)(y)) : $(I)(0);
}
$fn$I bp_bitwise_right_shift_of_$N($I x, $I y, $W bits) {
  if ($(U)(y) < $(U)(bits)) return x >> $(W)(y);
  return x < $(I)(0) ? ~$(I)(0) : $(I)(0);
}
)";

// Floating to integer: out of range the low bits of a wider signed integer, or the least one, as on the CPU.
constexpr std::string_view kToInt32 = R"(
$fn$INT bp_int32_of_$N($F x) {
  return x >= $F(-2147483648.0$s) && x < $F(2147483648.0$s) ? $(INT)(x) : $(INT)(-2147483647 - 1);
}
)";
// The low 32 bits of bp_int64_of, on devices that may have no such integers: each step is exact.
constexpr std::string_view kToUint32 = R"(
$fn$UINT bp_uint32_of_$N($F x) {
  if (!(x >= $F(-9223372036854775808.0$s) && x < $F(9223372036854775808.0$s))) return 0u;
  $REAL size = floor(x < $F(0.0$s) ? -x : x);
  $UINT low = $(UINT)(size - floor(size * $F(2.3283064365386963e-10$s)) * $F(4294967296.0$s));
  return x < $F(0.0$s) ? 0u - low : low;
}
)";
constexpr std::string_view kToInt64 = R"(
$fn$LONG bp_int64_of_$N($F x) {
  return x >= $F(-9223372036854775808.0$s) && x < $F(9223372036854775808.0$s) ? $(LONG)(x) : $LEAST;
}
$fn$ULONG bp_uint64_of_$N($F x) {
  if (!(x >= $F(9223372036854775808.0$s))) return $(ULONG)(bp_int64_of_$N(x));
  return x < $F(18446744073709551616.0$s) ? $(ULONG)(x) : $(ULONG)($LEAST);
}
)";

// Half floats are stored as 16 bits and computed with as float32.
constexpr std::string_view kHalfFloats = R"(
$fnfloat bp_float32_of_float16($W half_bits) {
  $W sign = (half_bits & 0x8000u) << 16, exponent = half_bits >> 10 & 31u, digits = half_bits & 1023u;
  if (exponent == 0u) {
    float size = $(float)(digits) * 5.96046448e-8f;
    return sign != 0u ? -size : size;
  }
  return bp_float_of_bits(sign | (exponent == 31u ? 0x7f800000u : (exponent + 112u) << 23) | digits << 13);
}
$fn$W bp_float16_of_float32(float x) {
  $W bits = bp_bits_of_float(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return sign | 0x7e00u;
  if (size >= 0x477ff000u) return sign | 0x7c00u;
  if (size < 0x38800000u) return sign | $(W)($round(bp_float_of_bits(size) * 16777216.0f));
  return sign | (size + 0xfffu + (size >> 13 & 1u) - (112u << 23)) >> 13;
}
$fnfloat bp_float32_of_bfloat16($W half_bits) { return bp_float_of_bits(half_bits << 16); }
$fn$W bp_bfloat16_of_float32(float x) {
  $W bits = bp_bits_of_float(x);
  return (bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
)";

constexpr std::string_view kCppStart = R"(
#include <math.h>
#include <stdint.h>
#include <string.h>

struct bp_complex64 {
  float re, im;
};
struct bp_complex128 {
  double re, im;
};
$fnfloat bp_inf_float32() { return INFINITY; }
$fnfloat bp_nan_float32() { return NAN; }
$fndouble bp_inf_float64() { return INFINITY; }
$fndouble bp_nan_float64() { return NAN; }
$fnuint32_t bp_bits_of_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
$fnfloat bp_float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
)";

constexpr std::string_view kOpenclStart = R"(
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
)";

constexpr std::string_view kGlslStart = R"(
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
)";

std::string guarded(const Dialect& dialect, std::string_view what, const std::string& text) {
  if (!dialect.optional_types) return text;
  return "#ifndef BP_SCALAR_WITHOUT_" + std::string(what) + text + "#endif\n";
}

std::string cast_open(const Dialect& dialect, bp_dtype dtype) {
  return dialect.c_casts ? "(" + dialect.type(dtype) + ")" : dialect.type(dtype);
}

std::string integers(const Dialect& dialect, bp_dtype dtype) {
  const bool is_signed = (BP_MASK_SIGNED >> dtype & 1) != 0;
  const bp_dtype unsigned_type = unsigned_of(dtype);
  const std::string one = cast_open(dialect, dtype) + "(1)", type = cast_open(dialect, unsigned_type);
  const std::string minus_one = "if (y == -" + one + ") return ";
  const Words words = {
      {"fn", std::string(dialect.function)},
      {"I", dialect.type(dtype)},
      {"U", dialect.type(unsigned_type)},
      {"W", dialect.type(BP_UINT32)},
      {"(I)", cast_open(dialect, dtype)},
      {"(U)", type},
      {"(W)", cast_open(dialect, BP_UINT32)},
      {"N", std::string(kDtypeNames[dtype])},
      // The least integer has no quotient by -1.
      {"NEGATIVE_ONE", is_signed ? minus_one + cast_open(dialect, dtype) + "(" + type + "(0) - " + type + "(x));" : ""},
      {"NO_REST", is_signed ? minus_one + cast_open(dialect, dtype) + "(0);" : ""},
  };
  return filled(kIntegers, words);
}

std::string to_integers(const Dialect& dialect, bp_dtype dtype) {
  const Words words = {
      {"fn", std::string(dialect.function)},
      {"F", dialect.c_casts ? "" : dialect.type(dtype)},
      {"N", std::string(kDtypeNames[dtype])},
      {"s", dtype == BP_FLOAT32 ? "f" : std::string(dialect.double_suffix)},
      {"F x", dialect.type(dtype) + " x"},
      {"INT", dialect.type(BP_INT32)},
      {"LONG", dialect.type(BP_INT64)},
      {"ULONG", dialect.type(BP_UINT64)},
      {"(INT)", cast_open(dialect, BP_INT32)},
      {"(LONG)", cast_open(dialect, BP_INT64)},
      {"(ULONG)", cast_open(dialect, BP_UINT64)},
      {"LEAST", dialect.number(BP_INT64, 0, INT64_MIN)},
      {"UINT", dialect.type(BP_UINT32)},
      {"(UINT)", cast_open(dialect, BP_UINT32)},
      {"REAL", dialect.type(dtype)},
  };
  return filled(kToInt32, words) + (dialect.optional_types ? filled(kToUint32, words) : "") +
         guarded(dialect, "INT64", filled(kToInt64, words));
}

}  // namespace

std::string filled(std::string_view text, const Words& words) {
  std::string result;
  while (!text.empty()) {
    const size_t at = text.find('$');
    result += text.substr(0, at);
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
    for (const auto& [word, value] : words) {
      if (!text.starts_with(word)) continue;
      result += value;
      text.remove_prefix(word.size());
      break;
    }
  }
  return result;
}

std::string scalar_prelude(const Dialect& dialect) {
  const Words words = {{"fn", std::string(dialect.function)},
                       {"W", dialect.type(BP_UINT32)},
                       {"(W)", cast_open(dialect, BP_UINT32)},
                       {"(float)", cast_open(dialect, BP_FLOAT32)},
                       {"round", dialect.is_cpp    ? "rintf"
                                 : dialect.c_casts ? "rint"
                                                   : "roundEven"}};
  const bool glsl = !dialect.c_casts;
  std::string text = filled(dialect.is_cpp ? kCppStart
                            : glsl         ? kGlslStart
                                           : kOpenclStart,
                            words) +
                     filled(kHalfFloats, words);
  text += integers(dialect, BP_INT32) + integers(dialect, BP_UINT32);
  text += guarded(dialect, "INT64", integers(dialect, BP_INT64) + integers(dialect, BP_UINT64));
  text += to_integers(dialect, BP_FLOAT32) + guarded(dialect, "FLOAT64", to_integers(dialect, BP_FLOAT64));
  if (glsl) text += kGlslFarTurn;
  if (glsl) text += glsl_math(dialect, BP_FLOAT32) + guarded(dialect, "FLOAT64", glsl_math(dialect, BP_FLOAT64));
  return text;
}

}  // namespace backplane::codegen
