// The builtins on numbers, for the table in builtins.cpp alone: arithmetic, comparison, logic.
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

namespace builtin {
#define BP_BUILTIN(name) bp_value name(const BuiltinCall& call)
BP_BUILTIN(add_numbers);
BP_BUILTIN(sub);
BP_BUILTIN(mul);
BP_BUILTIN(truediv);
BP_BUILTIN(floordiv);
BP_BUILTIN(mod);
BP_BUILTIN(pow);
BP_BUILTIN(neg);
BP_BUILTIN(eq);
BP_BUILTIN(ne);
BP_BUILTIN(lt);
BP_BUILTIN(le);
BP_BUILTIN(gt);
BP_BUILTIN(ge);
BP_BUILTIN(logical_and);
BP_BUILTIN(logical_or);
BP_BUILTIN(logical_not);
BP_BUILTIN(least);
BP_BUILTIN(greatest);
BP_BUILTIN(to_float);
BP_BUILTIN(to_int);
BP_BUILTIN(math_sqrt);
BP_BUILTIN(math_log);
BP_BUILTIN(math_exp);
#undef BP_BUILTIN
}  // namespace builtin

}  // namespace backplane::core
