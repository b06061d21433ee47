// What the builtins share of numbers: arithmetic, comparison, logic.
//
// bool counts as 0 or 1. Two ints give an int from -2^63 to 2^64 - 1, checked for overflow; with a float among them a
// float; with a complex number a complex one. Division by zero follows IEEE 754 for `/` and is an error for `//` and
// `%` on ints.
#pragma once

#include "record/builtins.hpp"

namespace backplane::core {

inline bool is_int(const bp_value& v) { return v.tag == BP_TAG_INT || v.tag == BP_TAG_BOOL; }
inline bool is_number(const bp_value& v) { return v.tag >= BP_TAG_BOOL && v.tag <= BP_TAG_COMPLEX; }

inline bp_value make_int(int64_t i) {
  bp_value v{};
  v.tag = BP_TAG_INT;
  v.u.i = i;
  return v;
}
inline bp_value make_bool(bool b) {
  bp_value v{};
  v.tag = BP_TAG_BOOL;
  v.u.i = b;
  return v;
}
inline bp_value make_float(double f) {
  bp_value v{};
  v.tag = BP_TAG_FLOAT;
  v.u.f = f;
  return v;
}

// What a tag is called in messages.
const char* tag_name(uint16_t tag) noexcept;
int64_t int_of(const BuiltinCall& call, const bp_value& v);   // throws where it is no int
double float_of(const BuiltinCall& call, const bp_value& v);  // throws where it is no real number
bool equal_values(const BuiltinCall& call, const bp_value& a, const bp_value& b);
// A Python truth: of a bool or a number. Throws Error(BP_ERROR_TYPE) for others.
bool truth(std::string_view op, const bp_value& value);
namespace builtin {
bp_value add_numbers(const BuiltinCall& call);  // `add` without lists
}

}  // namespace backplane::core
