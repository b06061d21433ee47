// GLSL's functions of floating numbers, as the header of scalar functions brings them; see scalar_dialects.hpp.
//
// Its own exp, log, sin and the like are as inexact as a device wishes, and there are none of doubles. These are within
// 4 units in the last place, pow within 16. A value is `precise` so that no compiler rearranges what cancels. By
// Taylor's series after reductions of the argument.
#include <cmath>

#include "emit/scalar_dialects.hpp"
#include "emit/scalar_glsl_angles.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

// $F: float or double, $N its name, $s the end of its literals.
constexpr std::string_view kGlslRoundFloat = R"(
$F bp_math_round_$N($F x) { return roundEven(x); }
)";
// Not by roundEven, which Mesa's llvmpipe computes wrongly for doubles on processors without AVX-512: 1 of 1.5.
constexpr std::string_view kGlslRoundDouble = R"(
$F bp_math_round_$N($F x) {
  $F below = floor(x);
  if (below == x) return x;
  $F rest = x - below, above = below + 1.0$s;
  $F nearest = rest > 0.5$s || (rest == 0.5$s && floor(0.5$s * below) * 2.0$s != below) ? above : below;
  return x < 0.0$s ? -abs(nearest) : nearest;
}
)";

constexpr std::string_view kGlslExponentials = R"(
$F bp_math_scale_$N($F x, int n) {
  int half_way = n / 2;
  return x * bp_math_power_of_2_$N(half_way) * bp_math_power_of_2_$N(n - half_way);
}
int bp_math_any_exponent_$N($F x) {
  return x < $LEAST_NORMAL ? bp_math_exponent_$N(x * $TO_NORMAL) - $TO_NORMAL_BITS : bp_math_exponent_$N(x);
}
$F bp_math_copysign_$N($F x, $F y) {
  $F size = abs(x);
  return bp_high_bits_$N(y) >> 31 != 0u ? -size : size;
}
$F bp_math_exp_$N($F x) {
  if (!(x <= $EXP_MOST)) return x != x ? x : bp_inf_$N();
  if (x < $EXP_LEAST) return 0.0$s;
  precise $F n = bp_math_round_$N(x * $LOG2_E);
  precise $F r = (x - n * $LN2_HIGH) - n * $LN2_LOW;
  precise $F power = $EXP_SERIES;
  return bp_math_scale_$N(power, int(n));
}
$F bp_math_expm1_$N($F x) {
  if (!(abs(x) < 0.35$s)) return bp_math_exp_$N(x) - 1.0$s;
  precise $F r = x;
  precise $F rest = x * x * $EXPM1_SERIES;
  return x == 0.0$s ? x : x + rest;
}
$F bp_math_tanh_$N($F x) {
  precise $F e = bp_math_expm1_$N(2.0$s * abs(x));
  return bp_math_copysign_$N(abs(x) > 22.0$s ? 1.0$s : e / (e + 2.0$s), x);
}
// log(x) of a positive, finite x as a sum of two.
void bp_math_log_parts_$N($F x, out $F high, out $F low) {
  int e = 0;
  if (x < $LEAST_NORMAL) {
    x *= $TO_NORMAL;
    e = -$TO_NORMAL_BITS;
  }
  int exponent = bp_math_exponent_$N(x);
  e += exponent;
  precise $F m = bp_math_scale_$N(x, -exponent);
  if (m > 1.41421356$s) {
    m *= 0.5$s;
    e += 1;
  }
  // s = (m - 1) / (m + 1), and what its rounding left out, by Dekker's product.
  precise $F f = m - 1.0$s, d = m + 1.0$s;
  precise $F d_low = m - (d - 1.0$s);
  precise $F s = f / d;
  precise $F c = $SPLIT * s, s_top = c - (c - s), s_end = s - s_top;
  precise $F k = $SPLIT * d, d_top = k - (k - d), d_end = d - d_top;
  precise $F p = s * d;
  precise $F p_low = ((s_top * d_top - p) + s_top * d_end + s_end * d_top) + s_end * d_end;
  precise $F s_low = (((f - p) - p_low) - s * d_low) / d;
  precise $F z = s * s;
  precise $F tail = s * z * $LOG_SERIES;
  precise $F a = $F(e) * $LN2_HIGH, b = 2.0$s * s;
  precise $F sum = a + b;
  precise $F rest = (b - (sum - a)) + (2.0$s * s_low + tail + $F(e) * $LN2_LOW);
  precise $F top = sum + rest;
  precise $F end = rest - (top - sum);
  high = top;
  low = end;
}
$F bp_math_log_$N($F x) {
  if (!(x > 0.0$s)) return x == 0.0$s ? -bp_inf_$N() : bp_nan_$N();
  if (x == bp_inf_$N()) return x;
  $F high, low;
  bp_math_log_parts_$N(x, high, low);
  return high;
}
$F bp_math_log1p_$N($F x) {
  precise $F u = 1.0$s + x;
  if (u == 1.0$s || u == bp_inf_$N()) return x;
  precise $F lost = u - 1.0$s;
  return bp_math_log_$N(u) * (x / lost);
}
$F bp_math_pow_$N($F x, $F y) {
  if (y == 0.0$s || x == 1.0$s) return 1.0$s;
  if (x != x || y != y) return bp_nan_$N();
  $F size = abs(x);
  bool whole = floor(y) == y, odd = whole && floor(y * 0.5$s) != y * 0.5$s;
  bool below = bp_high_bits_$N(x) >> 31 != 0u;
  if (abs(y) == bp_inf_$N()) return size == 1.0$s ? 1.0$s : (size > 1.0$s) == (y > 0.0$s) ? y * y : 0.0$s;
  if (size == 0.0$s || size == bp_inf_$N()) {
    $F limit = (size == 0.0$s) == (y > 0.0$s) ? 0.0$s : bp_inf_$N();
    return below && odd ? -limit : limit;
  }
  if (below && !whole) return bp_nan_$N();
  $F high, low;
  bp_math_log_parts_$N(size, high, low);
  precise $F w = clamp(y, -$POW_MOST, $POW_MOST);
  precise $F c = $SPLIT * w, w_top = c - (c - w), w_end = w - w_top;
  precise $F k = $SPLIT * high, h_top = k - (k - high), h_end = high - h_top;
  precise $F p = w * high;
  precise $F p_low = ((w_top * h_top - p) + w_top * h_end + w_end * h_top) + w_end * h_end + w * low;
  precise $F power = bp_math_exp_$N(p);
  if (power != bp_inf_$N()) power = power + power * p_low;
  return below && odd ? -power : power;
}
)";

constexpr std::string_view kGlslOthers = R"(
$F bp_math_turned_$N($F x, int quarters) {
  $F r;
  int quadrant = (bp_math_quadrant_$N(x, r) + quarters) & 3;
  if (r != r || x == 0.0$s) return quarters == 0 ? (r != r ? bp_nan_$N() : x) : (r != r ? r : 1.0$s);
  precise $F z = r * r;
  precise $F sine = r + r * z * $SIN_SERIES;
  precise $F cosine = 1.0$s + z * $COS_SERIES;
  $F size = (quadrant & 1) == 0 ? sine : cosine;
  return quadrant < 2 ? size : -size;
}
$F bp_math_sin_$N($F x) { return bp_math_turned_$N(x, 0); }
$F bp_math_cos_$N($F x) { return bp_math_turned_$N(x, 1); }
$F bp_math_atan_$N($F x) {
  $F size = abs(x);
  bool beyond = size > 1.0$s;
  precise $F t = beyond ? 1.0$s / size : size;
  bool far = t > 0.414213562373095049$s;
  precise $F u = far ? (t - 1.0$s) / (t + 1.0$s) : t;
  precise $F z = u * u;
  precise $F angle = u - u * z * $ATAN_SERIES;
  if (far) angle = 0.785398163397448310$s + angle;
  if (beyond) angle = 1.57079632679489662$s - angle;
  return bp_math_copysign_$N(angle, x);
}
$F bp_math_atan2_$N($F y, $F x) {
  if (x != x || y != y) return bp_nan_$N();
  $F a = abs(y), b = abs(x);
  bool left = bp_high_bits_$N(x) >> 31 != 0u;
  $F ratio = a == b ? 1.0$s : min(a, b) / max(a, b);
  precise $F angle = a == 0.0$s && b == 0.0$s ? 0.0$s : bp_math_atan_$N(ratio);
  if (a > b) angle = 1.57079632679489662$s - angle;
  if (left) angle = 3.14159265358979324$s - angle;
  return bp_math_copysign_$N(angle, y);
}
$F bp_math_hypot_$N($F x, $F y) {
  $F a = abs(x), b = abs(y);
  if (a == bp_inf_$N() || b == bp_inf_$N()) return bp_inf_$N();
  if (x != x || y != y) return bp_nan_$N();
  $F most = max(a, b);
  if (most == 0.0$s) return 0.0$s;
  precise $F ratio = min(a, b) / most;
  return most * sqrt(1.0$s + ratio * ratio);
}
$F bp_math_fmod_$N($F x, $F y) {
  $F rest = abs(x), b = abs(y);
  if (!(rest < bp_inf_$N()) || b != b || b == 0.0$s) return bp_nan_$N();
  if (b == bp_inf_$N()) return x;
  while (rest >= b) {
    int n = bp_math_any_exponent_$N(rest) - bp_math_any_exponent_$N(b);
    precise $F multiple = bp_math_scale_$N(bp_math_scale_$N(b, n / 2), n - n / 2);
    if (multiple > rest) multiple *= 0.5$s;
    precise $F left = rest - multiple;
    rest = left;
  }
  return bp_math_copysign_$N(rest, x);
}
// Near 0 by the series whose terms are all of one sign; farther by the continued fraction of the complement.
$F bp_math_erf_$N($F x) {
  $F a = abs(x);
  if (x != x) return x;
  if (a > 6.0$s) return bp_math_copysign_$N(1.0$s, x);
  precise $F square = a * a;
  precise $F result = 0.0$s;
  if (a < 2.0$s) {
    precise $F term = 1.0$s, sum = 1.0$s;
    for (int k = 1; k < $ERF_TERMS; ++k) {
      term *= 2.0$s * square / $F(2 * k + 1);
      sum += term;
    }
    result = 1.12837916709551257$s * a * sum * bp_math_exp_$N(-square);
  } else {
    precise $F fraction = a;
    for (int k = $ERFC_TERMS; k > 0; --k) fraction = a + 0.5$s * $F(k) / fraction;
    result = 1.0$s - bp_math_exp_$N(-square) * 0.564189583547756287$s / fraction;
  }
  return bp_math_copysign_$N(result, x);
}
)";

// The sum of coefficient(k) z^k for k below `terms`, by Horner's scheme.
template <class Coefficient>
std::string series(const Dialect& dialect, bp_dtype dtype, const char* z, int terms, Coefficient coefficient) {
  std::string text = dialect.floating(dtype, coefficient(terms - 1));
  for (int k = terms - 2; k >= 0; --k)
    text = "(" + dialect.floating(dtype, coefficient(k)) + " + " + z + " * " + text + ")";
  return text;
}

}  // namespace

Words math_constants(const Dialect& dialect, bp_dtype dtype) {
  const bool single = dtype == BP_FLOAT32;
  const auto literal = [&](double value) { return dialect.floating(dtype, value); };
  const auto sum = [&](const char* z, int terms, auto coefficient) {
    return series(dialect, dtype, z, terms, coefficient);
  };
  const auto factorial = [](int n) { return std::tgamma(n + 1.0); };
  const auto sign = [](int k) { return k % 2 == 0 ? 1.0 : -1.0; };
  const double split = single ? 0x1p12 + 1 : 0x1p27 + 1;
  return {
      {"EXP_MOST", literal(single ? 88.7228394 : 709.782712893383973)},
      {"EXP_LEAST", literal(single ? -104.0 : -746.0)},
      {"LOG2_E", literal(1.44269504088896341)},
      {"LN2_HIGH", literal(single ? 0.6923828125 : 0.6931471803691238)},
      {"LN2_LOW", literal(single ? 0.0007643680599453094 : 1.9082149292705877e-10)},
      {"EXP_SERIES", sum("r", single ? 9 : 15, [&](int k) { return 1 / factorial(k); })},
      {"EXPM1_SERIES", sum("r", single ? 8 : 14, [&](int k) { return 1 / factorial(k + 2); })},
      {"LEAST_NORMAL", literal(single ? 0x1p-126 : 0x1p-1022)},
      {"TO_NORMAL", literal(single ? 0x1p25 : 0x1p54)},
      {"TO_NORMAL_BITS", single ? "25" : "54"},
      {"SPLIT", literal(split)},
      {"LOG_SERIES", sum("z", single ? 6 : 12, [](int k) { return 2.0 / (2 * k + 3); })},
      {"POW_MOST", literal(single ? 1e10 : 1e20)},
      {"PIO2_1", literal(single ? 1.5703125 : 1.5707963267341256)},
      {"PIO2_2", literal(single ? 0.0004837512969970703 : 6.077100506303966e-11)},
      {"PIO2_3", literal(single ? 7.549533620476723e-08 : 2.0222662487959506e-21)},
      {"PIO2_4", literal(single ? 2.5633440682570896e-12 : 1.0085854035872483e-37)},
      {"SIN_SERIES", sum("z", single ? 5 : 9, [&](int k) { return -sign(k) / factorial(2 * k + 3); })},
      {"COS_SERIES", sum("z", single ? 5 : 9, [&](int k) { return -sign(k) / factorial(2 * k + 2); })},
      {"ATAN_SERIES", sum("z", single ? 10 : 21, [&](int k) { return sign(k) / (2 * k + 3); })},
      {"TURNED_MOST", literal(single ? 0x1p13 : 0x1p20)},
      {"DIGITS", single ? "23" : "52"},
      {"ERF_TERMS", single ? "28" : "44"},
      {"ERFC_TERMS", single ? "20" : "60"},
  };
}

std::string glsl_math(const Dialect& glsl, bp_dtype dtype) {
  const bool single = dtype == BP_FLOAT32;
  Words words = math_constants(glsl, dtype);
  words.insert({{"F", glsl.type(dtype)}, {"N", std::string(kDtypeNames[dtype])}, {"s", single ? "f" : "lf"}});
  return filled(single ? kGlslRoundFloat : kGlslRoundDouble, words) + filled(kGlslExponentials, words) +
         filled(kGlslQuadrant, words) + filled(kGlslOthers, words);
}

}  // namespace backplane::codegen
