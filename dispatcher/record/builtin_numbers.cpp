// Arithmetic, comparison and logic on the numbers of formulas; see builtin_numbers.hpp for the rules.
//
// Pure; complex results live in the call's arena.
#include "record/builtin_numbers.hpp"

#include <cmath>
#include <complex>
#include <limits>

#include "record/number_range.hpp"

namespace backplane::core {
namespace {

using Complex = std::complex<double>;

[[noreturn, gnu::cold, gnu::noinline]] void fail_type(const BuiltinCall& call, const bp_value& v,
                                                      const char* expected) {
  detail::fail(BP_ERROR_TYPE, call.op, ": ", call.name, " in its formula got ", tag_name(v.tag), "; expected ",
               expected);
}
[[noreturn, gnu::cold, gnu::noinline]] void fail_overflow(const BuiltinCall& call) {
  detail::fail(BP_ERROR_VALUE, call.op, ": ", call.name, " in its formula exceeds 64 bits");
}

Complex complex_of(const BuiltinCall& call, const bp_value& v) {
  if (v.tag == BP_TAG_COMPLEX) return {v.u.c[0], v.u.c[1]};
  return float_of(call, v);
}

bp_value make_complex(const BuiltinCall& call, Complex c) {
  double* parts = call.arena.array<double>(2);
  parts[0] = c.real();
  parts[1] = c.imag();
  bp_value v{};
  v.tag = BP_TAG_COMPLEX;
  v.u.c = parts;
  return v;
}

// Of an int from -2^63 to 2^64 - 1; the arithmetic on two of them fits twice the bits, except for products.
__extension__ typedef __int128 Wide;
Wide wide_of(const bp_value& v) { return v.flags & BP_VALUE_UINT64 ? Wide{static_cast<uint64_t>(v.u.i)} : Wide{v.u.i}; }
bp_value whole(const BuiltinCall& call, Wide number) {
  if (number >> 64 != 0 && number >> 63 != -1) fail_overflow(call);
  bp_value v = make_int(static_cast<int64_t>(number));
  if (number >> 63 == 1) v.flags = BP_VALUE_UINT64;
  return v;
}

// One rule for the binary operators: `ints` writes its result and returns whether it overflowed.
template <class Ints, class Reals>
bp_value arithmetic(const BuiltinCall& call, Ints ints, Reals reals) {
  const bp_value& a = call.in[0];
  const bp_value& b = call.in[1];
  if (is_int(a) && is_int(b)) {
    Wide result = 0;
    if (ints(wide_of(a), wide_of(b), &result)) fail_overflow(call);
    return whole(call, result);
  }
  if (a.tag == BP_TAG_COMPLEX || b.tag == BP_TAG_COMPLEX)
    return make_complex(call, reals(complex_of(call, a), complex_of(call, b)));
  return make_float(reals(float_of(call, a), float_of(call, b)));
}

template <class Compare>
bp_value compare(const BuiltinCall& call, Compare holds) {
  const bp_value& a = call.in[0];
  const bp_value& b = call.in[1];
  if (is_int(a) && is_int(b)) return make_bool(holds(wide_of(a), wide_of(b)));
  return make_bool(holds(float_of(call, a), float_of(call, b)));
}

void check_divisor(const BuiltinCall& call) {
  BP_CHECK(!is_int(call.in[0]) || !is_int(call.in[1]) || call.in[1].u.i != 0, VALUE, call.op, ": ", call.name,
           " in its formula divides ", call.in[0].u.i, " by 0");
}

bool power(Wide base, Wide exponent, Wide* result) {
  bool overflow = false;
  for (*result = 1; exponent > 0; exponent >>= 1) {
    if (exponent & 1) overflow |= __builtin_mul_overflow(*result, base, result);
    // The last square is not used, so that its overflow does not count.
    if (exponent > 1) overflow |= __builtin_mul_overflow(base, base, &base);
    if (overflow) return true;
  }
  return false;
}

// The extreme of the inputs, or of the one list among them.
template <class Better>
bp_value extreme(const BuiltinCall& call, Better better) {
  const bp_value& first = call.in[0];
  const bool list = call.in.size() == 1;
  if (list && !(first.tag & BP_TAG_LIST)) fail_type(call, first, "a list or several numbers");
  const uint32_t count = list ? first.count : static_cast<uint32_t>(call.in.size());
  BP_CHECK(count > 0, VALUE, call.op, ": ", call.name, " in its formula got an empty list");
  bp_value best = list ? list_element(first, 0) : first;
  float_of(call, best);
  for (uint32_t i = 1; i < count; ++i) {
    const bp_value next = list ? list_element(first, i) : call.in[i];
    const bool wins = is_int(best) && is_int(next) ? better(wide_of(next), wide_of(best))
                                                   : better(float_of(call, next), float_of(call, best));
    if (wins) best = next;
  }
  return best;
}

}  // namespace

const char* tag_name(uint16_t tag) noexcept {
  switch (tag) {
    case BP_TAG_ABSENT:
      return "none";
    case BP_TAG_BOOL:
      return "a bool";
    case BP_TAG_INT:
      return "an int";
    case BP_TAG_FLOAT:
      return "a float";
    case BP_TAG_COMPLEX:
      return "a complex number";
    case BP_TAG_STRING:
      return "a string";
    case BP_TAG_DTYPE:
      return "a dtype";
    case BP_TAG_DEVICE:
      return "a device";
    case BP_TAG_TENSOR:
      return "a tensor";
    case BP_TAG_INT_LIST:
      return "a list of ints";
    case BP_TAG_TENSOR_LIST:
      return "a list of tensors";
    default:
      return tag & BP_TAG_LIST ? "a list" : "a value of another kind";
  }
}

int64_t int_of(const BuiltinCall& call, const bp_value& v) {
  if (!is_int(v)) fail_type(call, v, "an int");
  if (v.flags & BP_VALUE_UINT64) fail_overflow(call);
  return v.u.i;
}

double float_of(const BuiltinCall& call, const bp_value& v) {
  if (v.tag == BP_TAG_FLOAT) return v.u.f;
  if (!is_int(v)) fail_type(call, v, "a real number");
  return real_of_number(v);
}

bool equal_values(const BuiltinCall& call, const bp_value& a, const bp_value& b) {
  if (is_number(a) && is_number(b)) {
    if (is_int(a) && is_int(b)) return wide_of(a) == wide_of(b);
    return complex_of(call, a) == complex_of(call, b);
  }
  if ((a.tag & BP_TAG_LIST) && (b.tag & BP_TAG_LIST)) {
    if (a.count != b.count) return false;
    for (uint32_t i = 0; i < a.count; ++i)
      if (!equal_values(call, list_element(a, i), list_element(b, i))) return false;
    return true;
  }
  if (a.tag != b.tag) return false;
  switch (a.tag) {
    case BP_TAG_ABSENT:
      return true;
    case BP_TAG_STRING:
      return std::string_view(a.u.s, a.count) == std::string_view(b.u.s, b.count);
    case BP_TAG_DTYPE:
      return a.u.i == b.u.i;
    case BP_TAG_DEVICE:
      return a.u.d.backend == b.u.d.backend && a.u.d.ordinal == b.u.d.ordinal;
    default:
      fail_type(call, a, "values that can be compared without data");
  }
}

bool truth(std::string_view op, const bp_value& value) {
  if (value.tag == BP_TAG_FLOAT) return value.u.f != 0;
  BP_CHECK(is_int(value), TYPE, op, ": a condition in its formula is ", tag_name(value.tag), "; expected a bool");
  return value.u.i != 0;
}

namespace builtin {

bp_value add_numbers(const BuiltinCall& call) {
  return arithmetic(
      call, [](Wide a, Wide b, Wide* r) { return __builtin_add_overflow(a, b, r); },
      [](auto a, auto b) { return a + b; });
}

bp_value sub(const BuiltinCall& call) {
  return arithmetic(
      call, [](Wide a, Wide b, Wide* r) { return __builtin_sub_overflow(a, b, r); },
      [](auto a, auto b) { return a - b; });
}

bp_value mul(const BuiltinCall& call) {
  return arithmetic(
      call, [](Wide a, Wide b, Wide* r) { return __builtin_mul_overflow(a, b, r); },
      [](auto a, auto b) { return a * b; });
}

bp_value truediv(const BuiltinCall& call) {
  const bp_value& a = call.in[0];
  const bp_value& b = call.in[1];
  if (a.tag == BP_TAG_COMPLEX || b.tag == BP_TAG_COMPLEX)
    return make_complex(call, complex_of(call, a) / complex_of(call, b));
  const double x = float_of(call, a), y = float_of(call, b);
  if (y != 0) return make_float(x / y);
  // Dividing by zero is defined by IEEE 754 but not by C++; a mean over no elements gets here.
  const double infinity = std::numeric_limits<double>::infinity();
  if (x == 0 || std::isnan(x)) return make_float(std::numeric_limits<double>::quiet_NaN());
  return make_float(std::signbit(x) == std::signbit(y) ? infinity : -infinity);
}

bp_value floordiv(const BuiltinCall& call) {
  check_divisor(call);
  if (!is_int(call.in[0]) || !is_int(call.in[1])) {
    const bp_value quotient = truediv(call);
    return make_float(std::floor(float_of(call, quotient)));  // which refuses a complex one
  }
  const Wide a = wide_of(call.in[0]), b = wide_of(call.in[1]);
  return whole(call, a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0));
}

bp_value mod(const BuiltinCall& call) {
  check_divisor(call);
  if (is_int(call.in[0]) && is_int(call.in[1])) {
    const Wide a = wide_of(call.in[0]), b = wide_of(call.in[1]), rest = a % b;
    return whole(call, rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
  }
  const double x = float_of(call, call.in[0]), y = float_of(call, call.in[1]);
  const double rest = std::fmod(x, y);
  return make_float(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
}

bp_value pow(const BuiltinCall& call) {
  const bp_value& exponent = call.in[1];
  if (is_int(call.in[0]) && is_int(exponent) && wide_of(exponent) < 0)
    return make_float(std::pow(float_of(call, call.in[0]), float_of(call, exponent)));
  return arithmetic(call, power, [](auto a, auto b) { return std::pow(a, b); });
}

bp_value neg(const BuiltinCall& call) {
  const bp_value& a = call.in[0];
  if (a.tag == BP_TAG_COMPLEX) return make_complex(call, -complex_of(call, a));
  if (!is_int(a)) return make_float(-float_of(call, a));
  return whole(call, -wide_of(a));
}

bp_value eq(const BuiltinCall& call) { return make_bool(equal_values(call, call.in[0], call.in[1])); }
bp_value ne(const BuiltinCall& call) { return make_bool(!equal_values(call, call.in[0], call.in[1])); }
bp_value lt(const BuiltinCall& call) {
  return compare(call, [](auto a, auto b) { return a < b; });
}
bp_value le(const BuiltinCall& call) {
  return compare(call, [](auto a, auto b) { return a <= b; });
}
bp_value gt(const BuiltinCall& call) {
  return compare(call, [](auto a, auto b) { return a > b; });
}
bp_value ge(const BuiltinCall& call) {
  return compare(call, [](auto a, auto b) { return a >= b; });
}
// The evaluator decides `and` and `or` by their first operand where it can; here both are known.
bp_value logical_and(const BuiltinCall& call) {
  return make_bool(truth(call.op, call.in[0]) && truth(call.op, call.in[1]));
}
bp_value logical_or(const BuiltinCall& call) {
  return make_bool(truth(call.op, call.in[0]) || truth(call.op, call.in[1]));
}
bp_value logical_not(const BuiltinCall& call) { return make_bool(!truth(call.op, call.in[0])); }

bp_value least(const BuiltinCall& call) {
  return extreme(call, [](auto a, auto b) { return a < b; });
}
bp_value greatest(const BuiltinCall& call) {
  return extreme(call, [](auto a, auto b) { return a > b; });
}

bp_value to_float(const BuiltinCall& call) { return make_float(float_of(call, call.in[0])); }

bp_value to_int(const BuiltinCall& call) {
  const double value = float_of(call, call.in[0]);
  if (is_int(call.in[0])) return whole(call, wide_of(call.in[0]));
  const double truncated = std::trunc(value);
  BP_CHECK(truncated >= -0x1p63 && truncated < 0x1p63, VALUE, call.op, ": int in its formula got ", value,
           ", which no 64-bit integer holds");
  return make_int(static_cast<int64_t>(truncated));
}

// Absent for a tensor.
bp_value conjugate_of_number(const BuiltinCall& call) {
  const bp_value& v = call.in[0];
  if (!is_number(v)) return {};
  return v.tag == BP_TAG_COMPLEX ? make_complex(call, std::conj(complex_of(call, v))) : v;
}

bp_value math_sqrt(const BuiltinCall& call) { return make_float(std::sqrt(float_of(call, call.in[0]))); }
bp_value math_log(const BuiltinCall& call) { return make_float(std::log(float_of(call, call.in[0]))); }
bp_value math_exp(const BuiltinCall& call) { return make_float(std::exp(float_of(call, call.in[0]))); }

}  // namespace builtin
}  // namespace backplane::core
