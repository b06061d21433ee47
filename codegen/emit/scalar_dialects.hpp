// How each dialect spells what a scalar function is made of. What differs between the dialects that look like C is in
// the table of scalar_dialects.cpp and in the texts of scalar_math.cpp. WGSL differs in its syntax and has a printer of
// its own.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "check/scalar.hpp"

namespace backplane::codegen {

struct Dialect {
  std::string_view word;       // of --dialect
  std::string_view extension;  // of the file
  std::string_view function;   // before a function's result
  std::string_view types[BP_DTYPE_COUNT];
  std::string_view re, im;  // members of a complex number
  bool c_casts;             // (int)(x), or int(x)
  bool optional_types;      // a device may lack 8, 16 or 64 bits: macros leave them out
  bool is_cpp;
  std::string_view double_suffix;
  std::string_view long_open, long_close;  // around the digits of an int64

  std::string type(bp_dtype dtype) const { return std::string(types[dtype]); }
  std::string cast(bp_dtype dtype, const std::string& value) const;
  std::string pair(bp_dtype dtype, const std::string& re, const std::string& im) const;
  std::string number(bp_dtype dtype, double number, int64_t integer) const;
  std::string floating(bp_dtype dtype, double number) const;
  std::string intrinsic(std::string_view op, bp_dtype dtype, const std::vector<std::string>& args) const;
  // `value`, a name, of another dtype.
  std::string convert(bp_dtype from, bp_dtype to, const std::string& value) const;
};

const std::vector<Dialect>& dialects();  // without WGSL
std::vector<std::string_view> dialect_words();

// The signed or unsigned integer in which an integer dtype computes: 32 bits at least.
bp_dtype working_integer(bp_dtype dtype);
bp_dtype unsigned_of(bp_dtype working);

// Longer names before those that they begin with.
using Words = std::map<std::string, std::string, std::greater<>>;
// `text` with each $NAME replaced.
std::string filled(std::string_view text, const Words& words);

// Limits and series of the mathematical functions that a dialect lacks, as words of their text; scalar_glsl.cpp.
Words math_constants(const Dialect& dialect, bp_dtype dtype);
// What GLSL lacks for float32 or float64; scalar_glsl.cpp.
std::string glsl_math(const Dialect& glsl, bp_dtype dtype);

// What every header begins with, once per translation unit: helpers of integers, conversions, and the functions that
// the dialect lacks.
std::string scalar_prelude(const Dialect& dialect);

}  // namespace backplane::codegen
