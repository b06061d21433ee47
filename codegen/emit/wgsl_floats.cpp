// Floating numbers in WGSL: arithmetic and comparisons with the results of IEEE 754, conversions, half floats.
//
// A compiler of WGSL may fuse, reassociate and simplify, and may assume that values are not NaN or infinite. It cannot
// do so across a change of the bits that it cannot predict: bp_opaque changes the last bit of a value where another one
// has the bits of one NaN among 2^24, which no computation makes. NaN are found by their bits, infinities are made of
// theirs.
#include "emit/wgsl.hpp"

namespace backplane::codegen {
namespace {

constexpr std::string_view kWgslFloats = R"(
fn bp_opaque(value: f32, witness: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(value) ^ select(0u, 1u, bitcast<u32>(witness) == 0x7fc5a3d1u));
}
fn bp_keep(value: f32) -> f32 { return bp_opaque(value, value); }
// Of a variable: WGSL has no constants that are infinite or NaN.
fn bp_inf_float32() -> f32 {
  var bits = 0x7f800000u;
  return bitcast<f32>(bits);
}
fn bp_nan_float32() -> f32 {
  var bits = 0x7fc00000u;
  return bitcast<f32>(bits);
}
fn bp_is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn bp_is_inf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }
fn bp_is_negative(x: f32) -> bool { return (bitcast<u32>(x) & 0x80000000u) != 0u; }  // -0 and -NaN too
fn bp_add_of_float32(x: f32, y: f32) -> f32 { return bp_keep(x + y); }
// What a compiler knows to be equal has the difference 0 and the quotient 1, unless it is infinite or NaN.
fn bp_subtract_of_float32(x: f32, y: f32) -> f32 { return bp_keep(x - bp_opaque(y, x)); }
fn bp_multiply_of_float32(x: f32, y: f32) -> f32 { return bp_keep(x * y); }
fn bp_divide_of_float32(x: f32, y: f32) -> f32 { return bp_keep(x / bp_opaque(y, x)); }
fn bp_equal_of_float32(x: f32, y: f32) -> bool { return x == y && !bp_is_nan(x) && !bp_is_nan(y); }
fn bp_less_of_float32(x: f32, y: f32) -> bool { return x < y && !bp_is_nan(x) && !bp_is_nan(y); }
fn bp_less_equal_of_float32(x: f32, y: f32) -> bool { return x <= y && !bp_is_nan(x) && !bp_is_nan(y); }

// To integers: out of range the low bits of a wider signed integer, or the least one, as on the CPU.
fn bp_int32_of_float32(x: f32) -> i32 {
  if (bp_is_nan(x) || !(x >= -2147483648.0f && x < 2147483648.0f)) { return i32(-2147483648); }
  return i32(x);
}
fn bp_int64_of_float32(x: f32) -> vec2<u32> {
  let bits = bitcast<u32>(x);
  let exponent = i32((bits >> 23u) & 255u) - 127;
  if (exponent < 0) { return vec2<u32>(0u, 0u); }
  if (exponent >= 63) { return vec2<u32>(0u, 0x80000000u); }
  let digits = (bits & 0x7fffffu) | 0x800000u;
  var size = vec2<u32>(digits >> u32(max(23 - exponent, 0)), 0u);
  if (exponent > 23) { size = bp_shifted_left(vec2<u32>(digits, 0u), u32(exponent - 23)); }
  if (bp_is_negative(x)) { return bp_subtract_of_int64(vec2<u32>(0u, 0u), size); }
  return size;
}
fn bp_uint64_of_float32(x: f32) -> vec2<u32> {
  let bits = bitcast<u32>(x);
  if ((bits >> 23u) == 190u) { return vec2<u32>(0u, ((bits & 0x7fffffu) | 0x800000u) << 8u); }  // from 2^63 to 2^64
  return bp_int64_of_float32(x);
}
fn bp_uint32_of_float32(x: f32) -> u32 { return bp_int64_of_float32(x).x; }
// To the nearest, ties to even.
fn bp_float32_of_uint64(x: vec2<u32>) -> f32 {
  if (x.y == 0u) { return f32(x.x); }
  let zeros = countLeadingZeros(x.y);
  let top = bp_shifted_left(x, zeros);
  let digits = top.y >> 8u;
  let rest = top.y & 255u;
  let up = rest > 128u || (rest == 128u && (top.x != 0u || (digits & 1u) == 1u));
  return bitcast<f32>(((190u - zeros) << 23u) + (digits - 0x800000u) + select(0u, 1u, up));
}
fn bp_float32_of_int64(x: vec2<u32>) -> f32 {
  let size = bp_float32_of_uint64(bp_size_of_int64(x));
  return select(size, -size, (x.y & 0x80000000u) != 0u);
}

// Half floats are stored as 16 bits and computed with as f32.
fn bp_float32_of_float16(half_bits: u32) -> f32 {
  let sign = (half_bits & 0x8000u) << 16u;
  let exponent = (half_bits >> 10u) & 31u;
  let digits = half_bits & 1023u;
  if (exponent == 0u) { return bitcast<f32>(bitcast<u32>(f32(digits) * 5.96046448e-8f) | sign); }
  return bitcast<f32>(sign | select((exponent + 112u) << 23u, 0x7f800000u, exponent == 31u) | (digits << 13u));
}
fn bp_float16_of_float32(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) { return sign | 0x7e00u; }
  if (size >= 0x477ff000u) { return sign | 0x7c00u; }
  if (size < 0x38800000u) { return sign | u32(round(bitcast<f32>(size) * 16777216.0f)); }
  return sign | ((size + 0xfffu + ((size >> 13u) & 1u) - (112u << 23u)) >> 13u);
}
fn bp_float32_of_bfloat16(half_bits: u32) -> f32 { return bitcast<f32>(half_bits << 16u); }
fn bp_bfloat16_of_float32(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  return select((bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u, (bits >> 16u) | 0x40u, bp_is_nan(x));
}
)";

}  // namespace

std::string wgsl_floats() { return std::string(kWgslFloats); }

}  // namespace backplane::codegen
