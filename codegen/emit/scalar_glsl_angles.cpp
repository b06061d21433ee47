// See scalar_glsl_angles.hpp.
#include "emit/scalar_glsl_angles.hpp"

namespace backplane::codegen {

// The product of the angle's digits and those of 2 / pi that are left modulo 4 (M. Payne, R. Hanek: Radian reduction
// for trigonometric functions, 1983). No double lies within 2^-62 of a multiple of pi / 2, relative to one: of the 190
// digits behind the point, 54 may be wrong and 62 may be zeros, so the 64 that are read are right.
const std::string_view kGlslFarTurn = R"(
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
)";

const std::string_view kGlslQuadrant = R"(
// x less the nearest multiple of pi / 2, and that multiple modulo 4.
int bp_math_quadrant_$N($F x, out $F rest) {
  if (x != x || abs(x) == bp_inf_$N()) {
    rest = bp_nan_$N();
    return 0;
  }
  if (abs(x) < $TURNED_MOST) {
    precise $F n = bp_math_round_$N(x * 0.636619772367581343$s);
    precise $F r = (((x - n * $PIO2_1) - n * $PIO2_2) - n * $PIO2_3) - n * $PIO2_4;
    rest = r;
    return int(n - 4.0$s * floor(n * 0.25$s));
  }
  uvec2 fraction;
  int zeros;
  bool is_above;
  int quadrant = bp_math_far_turn(bp_math_digits_$N(x), bp_math_exponent_$N(x) - $DIGITS, fraction, zeros, is_above);
  $F size = ($F(fraction.y) + $F(fraction.x) * 2.3283064365386962890625e-10$s) * 1.57079632679489662$s;
  size *= bp_math_power_of_2_$N(-32 - zeros);
  bool below = bp_high_bits_$N(x) >> 31 != 0u;
  rest = below == is_above ? -size : size;
  return (below ? -quadrant : quadrant) & 3;
}
)";

}  // namespace backplane::codegen
