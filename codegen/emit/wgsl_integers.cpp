// Integers in WGSL: those of 32 bits, and those of 64 as two words, the low one first. Their meaning is check/scalar's:
// everything wraps, a divisor of 0 gives 0, and a shift by the width or more shifts everything out.
#include "check/scalar.hpp"
#include "emit/scalar_dialects.hpp"
#include "emit/wgsl.hpp"

namespace backplane::codegen {
namespace {

// $I: i32 or u32, $s the end of its literals, $N its name.
constexpr std::string_view kWords = R"(
fn bp_floor_divide_of_$N(x: $I, y: $I) -> $I {
  if (y == 0$s) { return 0$s; }
  $NEGATIVE_ONE
  let quotient = x / y;
  let rest = x - quotient * y;
  return select(quotient, quotient - 1$s, rest != 0$s && (rest < 0$s) != (y < 0$s));
}
fn bp_fmod_of_$N(x: $I, y: $I) -> $I {
  if (y == 0$s) { return 0$s; }
  $NO_REST
  return x - (x / y) * y;
}
fn bp_pow_of_$N(x: $I, y: $I) -> $I {
  var power = 1u;
  var base = u32(x);
  for (var left = u32(y); left != 0u; left >>= 1u) {
    if ((left & 1u) != 0u) { power *= base; }
    base *= base;
  }
  return $I(power);
}
fn bp_bitwise_and_of_$N(x: $I, y: $I) -> $I { return x & y; }
fn bp_bitwise_or_of_$N(x: $I, y: $I) -> $I { return x | y; }
fn bp_bitwise_xor_of_$N(x: $I, y: $I) -> $I { return x ^ y; }
fn bp_bitwise_invert_of_$N(x: $I) -> $I { return ~x; }
fn bp_bitwise_left_shift_of_$N(x: $I, y: $I, bits: u32) -> $I {
  return select(0$s, x << (u32(y) & 31u), u32(y) < bits);
}
fn bp_bitwise_right_shift_of_$N(x: $I, y: $I, bits: u32) -> $I {
  return select(select(0$s, ~0$s, x < 0$s), x >> (u32(y) & 31u), u32(y) < bits);
}
)";

// Pairs of words, whatever their sign.
constexpr std::string_view kPairsOfWords = R"(
fn bp_shifted_left(x: vec2<u32>, n: u32) -> vec2<u32> {
  if (n == 0u) { return x; }
  if (n >= 32u) { return vec2<u32>(0u, x.x << (n & 31u)); }
  return vec2<u32>(x.x << n, (x.y << n) | (x.x >> (32u - n)));
}
fn bp_shifted_right(x: vec2<u32>, n: u32, fill: u32) -> vec2<u32> {
  if (n == 0u) { return x; }
  if (n == 32u) { return vec2<u32>(x.y, fill); }
  if (n > 32u) { return vec2<u32>((x.y >> (n - 32u)) | (fill << (64u - n)), fill); }
  return vec2<u32>((x.x >> n) | (x.y << (32u - n)), (x.y >> n) | (fill << (32u - n)));
}
fn bp_multiplied_words(x: u32, y: u32) -> vec2<u32> {
  let low = (x & 0xffffu) * (y & 0xffffu);
  let middle = (x >> 16u) * (y & 0xffffu) + (low >> 16u);
  let other = (x & 0xffffu) * (y >> 16u) + (middle & 0xffffu);
  return vec2<u32>((other << 16u) | (low & 0xffffu), (x >> 16u) * (y >> 16u) + (middle >> 16u) + (other >> 16u));
}
// Unsigned; y is not 0.
fn bp_quotient(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (x.y == 0u && y.y == 0u) { return vec2<u32>(x.x / y.x, 0u); }
  var left = x;
  var rest = vec2<u32>(0u, 0u);
  var quotient = vec2<u32>(0u, 0u);
  for (var i = 0; i < 64; i++) {
    let carries = (rest.y & 0x80000000u) != 0u;
    rest = bp_shifted_left(rest, 1u) | vec2<u32>(left.y >> 31u, 0u);
    left = bp_shifted_left(left, 1u);
    quotient = bp_shifted_left(quotient, 1u);
    if (carries || !bp_less_of_uint64(rest, y)) {
      rest = bp_subtract_of_uint64(rest, y);
      quotient.x |= 1u;
    }
  }
  return quotient;
}
fn bp_size_of_int64(x: vec2<u32>) -> vec2<u32> {
  if ((x.y & 0x80000000u) == 0u) { return x; }
  return bp_subtract_of_int64(vec2<u32>(0u, 0u), x);
}
fn bp_int64_of_int32(x: i32) -> vec2<u32> { return vec2<u32>(u32(x), u32(x >> 31u)); }
fn bp_int64_of_uint32(x: u32) -> vec2<u32> { return vec2<u32>(x, 0u); }
fn bp_less_of_uint64(x: vec2<u32>, y: vec2<u32>) -> bool { return x.y < y.y || (x.y == y.y && x.x < y.x); }
fn bp_less_of_int64(x: vec2<u32>, y: vec2<u32>) -> bool {
  return i32(x.y) < i32(y.y) || (x.y == y.y && x.x < y.x);
}
fn bp_floor_divide_of_uint64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (all(y == vec2<u32>(0u, 0u))) { return y; }
  return bp_quotient(x, y);
}
fn bp_truncated_of_int64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  let quotient = bp_quotient(bp_size_of_int64(x), bp_size_of_int64(y));
  if (((x.y ^ y.y) & 0x80000000u) == 0u) { return quotient; }
  return bp_subtract_of_int64(vec2<u32>(0u, 0u), quotient);
}
fn bp_floor_divide_of_int64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (all(y == vec2<u32>(0u, 0u))) { return y; }
  let quotient = bp_truncated_of_int64(x, y);
  let rest = bp_subtract_of_int64(x, bp_multiply_of_int64(quotient, y));
  if (all(rest == vec2<u32>(0u, 0u)) || ((rest.y ^ y.y) & 0x80000000u) == 0u) { return quotient; }
  return bp_subtract_of_int64(quotient, vec2<u32>(1u, 0u));
}
fn bp_fmod_of_uint64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (all(y == vec2<u32>(0u, 0u))) { return y; }
  return bp_subtract_of_uint64(x, bp_multiply_of_uint64(bp_quotient(x, y), y));
}
fn bp_fmod_of_int64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (all(y == vec2<u32>(0u, 0u))) { return y; }
  return bp_subtract_of_int64(x, bp_multiply_of_int64(bp_truncated_of_int64(x, y), y));
}
fn bp_bitwise_right_shift_of_uint64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (y.y != 0u || y.x > 63u) { return vec2<u32>(0u, 0u); }
  return bp_shifted_right(x, y.x, 0u);
}
fn bp_bitwise_right_shift_of_int64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  let fill = u32(i32(x.y) >> 31u);
  if (y.y != 0u || y.x > 63u) { return vec2<u32>(fill, fill); }
  return bp_shifted_right(x, y.x, fill);
}
)";

// Functions that are the same for signed and unsigned, of both.
constexpr std::string_view kEitherPair = R"(
fn bp_add_of_$N(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  let low = x.x + y.x;
  return vec2<u32>(low, x.y + y.y + select(0u, 1u, low < x.x));
}
fn bp_subtract_of_$N(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(x.x - y.x, x.y - y.y - select(0u, 1u, x.x < y.x));
}
fn bp_multiply_of_$N(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  let product = bp_multiplied_words(x.x, y.x);
  return vec2<u32>(product.x, product.y + x.x * y.y + x.y * y.x);
}
fn bp_equal_of_$N(x: vec2<u32>, y: vec2<u32>) -> bool { return all(x == y); }
fn bp_less_equal_of_$N(x: vec2<u32>, y: vec2<u32>) -> bool { return !bp_less_of_$N(y, x); }
fn bp_pow_of_$N(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  var power = vec2<u32>(1u, 0u);
  var base = x;
  for (var left = y; any(left != vec2<u32>(0u, 0u)); left = bp_shifted_right(left, 1u, 0u)) {
    if ((left.x & 1u) != 0u) { power = bp_multiply_of_$N(power, base); }
    base = bp_multiply_of_$N(base, base);
  }
  return power;
}
fn bp_bitwise_and_of_$N(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return x & y; }
fn bp_bitwise_or_of_$N(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return x | y; }
fn bp_bitwise_xor_of_$N(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return x ^ y; }
fn bp_bitwise_invert_of_$N(x: vec2<u32>) -> vec2<u32> { return ~x; }
fn bp_bitwise_left_shift_of_$N(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (y.y != 0u || y.x > 63u) { return vec2<u32>(0u, 0u); }
  return bp_shifted_left(x, y.x);
}
)";

}  // namespace

std::string wgsl_integers() {
  const Words of_int32 = {{"I", "i32"},
                          {"s", "i"},
                          {"N", "int32"},
                          // The least integer has no quotient by -1.
                          {"NEGATIVE_ONE", "if (y == -1i) { return 0i - x; }"},
                          {"NO_REST", "if (y == -1i) { return 0i; }"}};
  const Words of_uint32 = {{"I", "u32"}, {"s", "u"}, {"N", "uint32"}, {"NEGATIVE_ONE", ""}, {"NO_REST", ""}};
  return filled(kWords, of_int32) + filled(kWords, of_uint32) + std::string(kPairsOfWords) +
         filled(kEitherPair, {{"N", "int64"}}) + filled(kEitherPair, {{"N", "uint64"}});
}

}  // namespace backplane::codegen
