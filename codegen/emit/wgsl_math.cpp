// WGSL's functions of float32, by the series of scalar_glsl.cpp: WGSL's own are as inexact as a device wishes.
//
// Within 4 units in the last place, pow within 16. What a rounding leaves out is found by products of short numbers,
// which are exact fused or not, and by differences that bp_keep hides from the compiler.
#include "emit/scalar_dialects.hpp"
#include "emit/wgsl.hpp"

namespace backplane::codegen {
namespace {

constexpr std::string_view kWgslExponentials = R"(
fn bp_math_power_of_2(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }
fn bp_math_scaled(x: f32, n: i32) -> f32 {
  let half_way = n / 2;
  return bp_keep(bp_keep(x * bp_math_power_of_2(half_way)) * bp_math_power_of_2(n - half_way));
}
fn bp_math_exponent(x: f32) -> i32 { return i32((bitcast<u32>(x) >> 23u) & 255u) - 127; }
fn bp_math_any_exponent(x: f32) -> i32 {
  if (x < $LEAST_NORMAL) { return bp_math_exponent(x * $TO_NORMAL) - $TO_NORMAL_BITS; }
  return bp_math_exponent(x);
}
// The upper 12 of the 24 digits of x; the product of two such numbers is exact.
fn bp_math_upper(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }
// x * y less `product`, its rounded value.
fn bp_math_lost(x: f32, y: f32, product: f32) -> f32 {
  let a = bp_math_upper(x);
  let b = x - a;
  let c = bp_math_upper(y);
  let d = y - c;
  return bp_keep(bp_keep(bp_keep(bp_keep(a * c) - product) + bp_keep(a * d)) + bp_keep(b * c)) + b * d;
}
fn bp_math_copysign_float32(x: f32, y: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(y) & 0x80000000u));
}
fn bp_math_exp_float32(x: f32) -> f32 {
  if (bp_is_nan(x)) { return x; }
  if (x > $EXP_MOST) { return bp_inf_float32(); }
  if (x < $EXP_LEAST) { return 0.0f; }
  let n = round(x * $LOG2_E);
  let r = bp_keep(bp_keep(x - n * $LN2_HIGH) - n * $LN2_LOW);
  let power = $EXP_SERIES;
  return bp_math_scaled(power, i32(n));
}
fn bp_math_expm1_float32(x: f32) -> f32 {
  if (bp_is_nan(x) || !(abs(x) < 0.35f)) { return bp_keep(bp_math_exp_float32(x) - 1.0f); }
  let r = x;
  return select(bp_keep(x + x * x * $EXPM1_SERIES), x, x == 0.0f);
}
fn bp_math_tanh_float32(x: f32) -> f32 {
  if (bp_is_nan(x)) { return x; }
  if (abs(x) > 22.0f) { return bp_math_copysign_float32(1.0f, x); }
  let e = bp_math_expm1_float32(2.0f * abs(x));
  return bp_math_copysign_float32(e / (e + 2.0f), x);
}
// log(x) of a positive, finite x as a sum of two, the larger first.
fn bp_math_log_parts(x: f32) -> vec2<f32> {
  let is_subnormal = x < $LEAST_NORMAL;
  let normal = select(x, x * $TO_NORMAL, is_subnormal);
  let exponent = bp_math_exponent(normal);
  var e = exponent - select(0, $TO_NORMAL_BITS, is_subnormal);
  var m = bitcast<f32>((bitcast<u32>(normal) & 0x7fffffu) | 0x3f800000u);
  if (m > 1.41421356f) {
    m *= 0.5f;
    e += 1;
  }
  // s = (m - 1) / (m + 1), and what its rounding left out.
  let f = bp_keep(m - 1.0f);
  let d = bp_keep(m + 1.0f);
  let d_low = bp_keep(m - bp_keep(d - 1.0f));
  let s = bp_keep(f / d);
  let p = bp_keep(s * d);
  let s_low = bp_keep(bp_keep(bp_keep(f - p) - bp_math_lost(s, d, p)) - s * d_low) / d;
  let z = s * s;
  let tail = s * z * $LOG_SERIES;
  let a = bp_keep(f32(e) * $LN2_HIGH);
  let b = 2.0f * s;
  let sum = bp_keep(a + b);
  let rest = bp_keep(b - bp_keep(sum - a)) + (2.0f * s_low + tail + f32(e) * $LN2_LOW);
  let top = bp_keep(sum + rest);
  return vec2<f32>(top, bp_keep(rest - bp_keep(top - sum)));
}
fn bp_math_log_float32(x: f32) -> f32 {
  if (bp_is_nan(x)) { return x; }
  if (x == 0.0f) { return -bp_inf_float32(); }
  if (bp_is_negative(x)) { return bp_nan_float32(); }
  if (bp_is_inf(x)) { return x; }
  return bp_math_log_parts(x).x;
}
fn bp_math_log1p_float32(x: f32) -> f32 {
  let u = bp_keep(1.0f + x);
  if (bp_is_nan(x) || u == 1.0f || (bp_is_inf(u) && !bp_is_negative(u))) { return x; }
  return bp_math_log_float32(u) * (x / bp_keep(u - 1.0f));
}
fn bp_math_pow_limit(x: f32, y: f32, is_odd: bool) -> f32 {
  let limit = select(bp_inf_float32(), 0.0f, (x == 0.0f) == (y > 0.0f));
  return select(limit, -limit, bp_is_negative(x) && is_odd);
}
fn bp_math_pow_float32(x: f32, y: f32) -> f32 {
  if (y == 0.0f || bitcast<u32>(x) == 0x3f800000u) { return 1.0f; }
  if (bp_is_nan(x) || bp_is_nan(y)) { return bp_nan_float32(); }
  let size = abs(x);
  let is_whole = bp_is_inf(y) || floor(y) == y;
  let is_odd = is_whole && abs(y) < 16777216.0f && floor(y * 0.5f) * 2.0f != y;
  if (bp_is_inf(y)) {
    if (size == 1.0f) { return 1.0f; }
    return select(0.0f, bp_inf_float32(), (size > 1.0f) != bp_is_negative(y));
  }
  if (size == 0.0f || bp_is_inf(x)) { return bp_math_pow_limit(x, y, is_odd); }
  if (bp_is_negative(x) && !is_whole) { return bp_nan_float32(); }
  let log = bp_math_log_parts(size);
  let w = clamp(y, -$POW_MOST, $POW_MOST);
  let p = bp_keep(w * log.x);
  var power = bp_math_exp_float32(p);
  if (!bp_is_inf(power)) { power = bp_keep(power + power * (bp_math_lost(w, log.x, p) + w * log.y)); }
  return select(power, -power, bp_is_negative(x) && is_odd);
}
)";

constexpr std::string_view kWgslCircle = R"(
// Digits of 2 / pi in words of 32 bits, after a word of zeros.
const bp_math_two_over_pi = array<u32, 8>(
  0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
struct BpTurn {
  rest: f32,
  quadrant: i32,
}
// x less the nearest multiple of pi / 2, and that multiple modulo 4. From 2^13 on by the product of x's digits and those
// of 2 / pi that are left modulo 4 (M. Payne, R. Hanek: Radian reduction for trigonometric functions, 1983).
fn bp_math_turn(x: f32) -> BpTurn {
  if (abs(x) < $TURNED_MOST) {
    let n = round(x * 0.636619772f);
    let r = bp_keep(bp_keep(bp_keep(x - n * $PIO2_1) - n * $PIO2_2) - n * $PIO2_3) - n * $PIO2_4;
    return BpTurn(r, i32(n) & 3);
  }
  let digits = (bitcast<u32>(x) & 0x7fffffu) | 0x800000u;
  let first = u32(bp_math_exponent(x) - 23 + 30);
  let word = first >> 5u;
  var table = bp_math_two_over_pi;
  var window = vec3<u32>(table[word], table[word + 1u], table[word + 2u]);
  let shift = first & 31u;
  if (shift > 0u) {
    window = (window << vec3<u32>(shift)) |
             (vec3<u32>(window.y, window.z, table[word + 3u]) >> vec3<u32>(32u - shift));
  }
  let low = bp_multiplied_words(digits, window.z);
  let middle = bp_add_of_uint64(bp_multiplied_words(digits, window.y), vec2<u32>(low.y, 0u));
  let high = digits * window.x + middle.y;
  // Two digits before the point, 64 behind it.
  var quadrant = i32(high >> 30u);
  var fraction = vec2<u32>((middle.x << 2u) | (low.x >> 30u), (high << 2u) | (middle.x >> 30u));
  let is_above = (fraction.y & 0x80000000u) != 0u;
  if (is_above) {
    quadrant += 1;
    fraction = bp_subtract_of_uint64(vec2<u32>(0u, 0u), fraction);
  }
  let rest = bp_float32_of_uint64(fraction) * 5.42101086e-20f * 1.57079637f;
  if (bp_is_negative(x)) { return BpTurn(select(-rest, rest, is_above), -quadrant & 3); }
  return BpTurn(select(rest, -rest, is_above), quadrant & 3);
}
fn bp_math_turned(x: f32, quarters: i32) -> f32 {
  if (bp_is_nan(x) || bp_is_inf(x)) { return bp_nan_float32(); }
  if (x == 0.0f) { return select(1.0f, x, quarters == 0); }
  let turn = bp_math_turn(x);
  let r = turn.rest;
  let quadrant = (turn.quadrant + quarters) & 3;
  let z = r * r;
  let sine = r + r * z * $SIN_SERIES;
  let cosine = 1.0f + z * $COS_SERIES;
  let size = select(cosine, sine, (quadrant & 1) == 0);
  return select(-size, size, quadrant < 2);
}
fn bp_math_sin_float32(x: f32) -> f32 { return bp_math_turned(x, 0); }
fn bp_math_cos_float32(x: f32) -> f32 { return bp_math_turned(x, 1); }
fn bp_math_atan_float32(x: f32) -> f32 {
  if (bp_is_nan(x)) { return x; }
  let size = abs(x);
  let is_beyond = size > 1.0f;
  let t = select(select(size, 1.0f / size, is_beyond), 0.0f, bp_is_inf(x));
  let is_far = t > 0.414213562f;
  let u = select(t, bp_keep(t - 1.0f) / (t + 1.0f), is_far);
  let z = u * u;
  var angle = bp_keep(u - u * z * $ATAN_SERIES);
  if (is_far) { angle = bp_keep(0.785398163f + angle); }
  if (is_beyond) { angle = bp_keep(1.57079633f - angle); }
  return bp_math_copysign_float32(angle, x);
}
fn bp_math_atan2_float32(y: f32, x: f32) -> f32 {
  if (bp_is_nan(x) || bp_is_nan(y)) { return bp_nan_float32(); }
  let a = abs(y);
  let b = abs(x);
  var ratio = min(a, b) / max(a, b);
  if (a == b || (bp_is_inf(x) && bp_is_inf(y))) { ratio = 1.0f; }
  if ((bp_is_inf(x) || bp_is_inf(y)) && !(bp_is_inf(x) && bp_is_inf(y))) { ratio = 0.0f; }
  if (a == 0.0f && b == 0.0f) { ratio = 0.0f; }
  var angle = bp_math_atan_float32(ratio);
  if (a > b) { angle = bp_keep(1.57079633f - angle); }
  if (bp_is_negative(x)) { angle = bp_keep(3.14159265f - angle); }
  return bp_math_copysign_float32(angle, y);
}
)";

constexpr std::string_view kWgslOthers = R"(
fn bp_math_hypot_float32(x: f32, y: f32) -> f32 {
  if (bp_is_inf(x) || bp_is_inf(y)) { return bp_inf_float32(); }
  if (bp_is_nan(x) || bp_is_nan(y)) { return bp_nan_float32(); }
  let most = max(abs(x), abs(y));
  if (most == 0.0f) { return 0.0f; }
  let ratio = min(abs(x), abs(y)) / most;
  return bp_keep(most * bp_keep(sqrt(1.0f + ratio * ratio)));
}
fn bp_math_fmod_float32(x: f32, y: f32) -> f32 {
  var rest = abs(x);
  let b = abs(y);
  if (bp_is_nan(x) || bp_is_inf(x) || bp_is_nan(y) || b == 0.0f) { return bp_nan_float32(); }
  if (bp_is_inf(y)) { return x; }
  while (rest >= b) {
    let n = bp_math_any_exponent(rest) - bp_math_any_exponent(b);
    var multiple = bp_math_scaled(bp_math_scaled(b, n / 2), n - n / 2);
    if (bp_is_inf(multiple) || multiple > rest) { multiple *= 0.5f; }
    rest = bp_keep(rest - multiple);
  }
  return bp_math_copysign_float32(rest, x);
}
// Near 0 by the series whose terms are all of one sign; farther by the continued fraction of the complement.
fn bp_math_erf_float32(x: f32) -> f32 {
  if (bp_is_nan(x)) { return x; }
  let a = abs(x);
  if (a > 6.0f) { return bp_math_copysign_float32(1.0f, x); }
  let square = a * a;
  if (a < 2.0f) {
    var term = 1.0f;
    var sum = 1.0f;
    for (var k = 1; k < $ERF_TERMS; k++) {
      term *= 2.0f * square / f32(2 * k + 1);
      sum += term;
    }
    return bp_math_copysign_float32(1.12837917f * a * sum * bp_math_exp_float32(-square), x);
  }
  var fraction = a;
  for (var k = $ERFC_TERMS; k > 0; k--) { fraction = a + 0.5f * f32(k) / fraction; }
  return bp_math_copysign_float32(1.0f - bp_math_exp_float32(-square) * 0.564189584f / fraction, x);
}
)";

}  // namespace

std::string wgsl_math() {
  const Words words = math_constants(dialects().front(), BP_FLOAT32);
  return filled(kWgslExponentials, words) + filled(kWgslCircle, words) + filled(kWgslOthers, words);
}

}  // namespace backplane::codegen
