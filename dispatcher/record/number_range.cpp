#include "record/number_range.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "backplane/op.hpp"
#include "record/dtype_rules.hpp"

namespace backplane::core {
namespace {

// The dtype's largest number is 2^digits - 1.
int digits_of(bp_dtype dtype) {
  const int bits = 8 * kItemSize[dtype];
  return is_in(dtype, BP_MASK_SIGNED) ? bits - 1 : bits;
}

bool holds_int(bp_dtype dtype, int64_t number) {
  const int digits = digits_of(dtype);
  if (number < 0) return is_in(dtype, BP_MASK_SIGNED) && number >> digits == -1;
  return digits >= 63 || number >> digits == 0;
}

bool holds_float(bp_dtype dtype, double number) {
  const double end = std::ldexp(1.0, digits_of(dtype)), whole = std::trunc(number);
  return whole < end && whole >= (is_in(dtype, BP_MASK_SIGNED) ? -end : 0.0);
}

std::string text_of(const bp_value& number) {
  std::ostringstream text;
  if (number.tag == BP_TAG_COMPLEX)
    text << "complex number " << number.u.c[0] << (number.u.c[1] < 0 ? " - " : " + ") << std::abs(number.u.c[1]) << 'j';
  else if (number.tag == BP_TAG_FLOAT || (number.flags & BP_VALUE_BEYOND))
    text << "number " << number.u.f;
  else if (number.flags & BP_VALUE_UINT64)
    text << "integer " << static_cast<uint64_t>(number.u.i);
  else
    text << "integer " << number.u.i;
  return text.str();
}

std::string place_of(const OpRecord& op, int32_t arg) {
  return std::string(op.name) + ": argument '" + op.args[static_cast<size_t>(arg)].name + "'";
}

std::string range_of(bp_dtype dtype) {
  const uint64_t last = ~uint64_t{0} >> (64 - digits_of(dtype));
  return (is_in(dtype, BP_MASK_SIGNED) ? "-" + std::to_string(last + 1) : "0") + " to " + std::to_string(last);
}

}  // namespace

double real_of_number(const bp_value& number) noexcept {
  if (number.tag == BP_TAG_FLOAT || (number.flags & BP_VALUE_BEYOND)) return number.u.f;
  return number.flags & BP_VALUE_UINT64 ? static_cast<double>(static_cast<uint64_t>(number.u.i))
                                        : static_cast<double>(number.u.i);
}

bool holds_number(bp_dtype dtype, const bp_value& number) noexcept {
  if (is_in(dtype, BP_MASK_BOOL | BP_MASK_COMPLEX) || number.tag == BP_TAG_BOOL) return true;
  if (number.tag == BP_TAG_COMPLEX) return false;
  if (is_in(dtype, BP_MASK_FLOATING)) return true;
  if (number.tag == BP_TAG_FLOAT) return holds_float(dtype, number.u.f);
  if (number.flags & (BP_VALUE_UINT64 | BP_VALUE_BEYOND))
    return dtype == BP_UINT64 && !(number.flags & BP_VALUE_BEYOND);
  return holds_int(dtype, number.u.i);
}

void fail_number(bp_dtype dtype, const bp_value& number, const std::string& place) {
  if (number.tag == BP_TAG_COMPLEX)
    detail::fail(BP_ERROR_DTYPE, place, ": the ", text_of(number), " does not fit ", kDtypeNames[dtype],
                 ", which has no imaginary part; give its real part, or use a complex dtype");
  detail::fail(BP_ERROR_OVERFLOW, place, ": the ", text_of(number), " is out of bounds for ", kDtypeNames[dtype],
               ", which holds ", range_of(dtype), "; use ",
               number.flags & BP_VALUE_UINT64 ? "uint64, which holds it" : "a dtype that holds it",
               ", or a number in range");
}

void check_complex_scalar(const OpRecord& op, const bp_value* args, int32_t n_args, int32_t arg) {
  const auto promotes = [&](int32_t i) { return i < 64 && (op.def.promote >> i & 1); };
  if (op.args[static_cast<size_t>(arg)].type != BP_TYPE_SCALAR) return;
  // One that promotes makes the result complex, where no dtype is asked for that is not.
  if (promotes(arg) ? op.tensor_args != 0 || args[arg].u.c[1] == 0 : op.def.promote == 0 && op.tensor_args != 0) return;
  const bp_dtype result = result_dtype(op, args, n_args, 0, compute_dtype(op, args, n_args));
  if (result < BP_DTYPE_COUNT && !is_in(result, BP_MASK_COMPLEX)) fail_number(result, args[arg], place_of(op, arg));
}

bool with_infinities(const OpRecord& op, const bp_value* args, int32_t n_args, bp_dtype compute, bp_value* replaced) {
  if (!(op.def.dtype_flags & BP_DTYPE_COMPARES) || compute == BP_DTYPE_NONE || !is_in(compute, BP_MASK_INTEGER))
    return false;
  bool tensors = false, found = false;
  std::copy(args, args + n_args, replaced);
  for (int32_t i = 0; i < std::min(n_args, 64); ++i) {
    if (!(op.def.promote >> i & 1)) continue;
    tensors = tensors || args[i].tag == BP_TAG_TENSOR;
    if (args[i].tag != BP_TAG_INT || holds_number(compute, args[i])) continue;
    replaced[i] = {.tag = BP_TAG_FLOAT, .flags = BP_VALUE_NUMBER, .count = 0, .u = {}};
    replaced[i].u.f = std::copysign(std::numeric_limits<double>::infinity(), real_of_number(args[i]));
    found = true;
  }
  return tensors && found;
}

}  // namespace backplane::core

namespace backplane {

void check_number(bp_dtype dtype, const bp_value& number, const char* place) {
  if (!core::holds_number(dtype, number)) core::fail_number(dtype, number, place);
}

}  // namespace backplane
