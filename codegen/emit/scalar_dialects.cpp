// The table of dialects, and the spelling of values, casts and intrinsics; see scalar_dialects.hpp.
#include "emit/scalar_dialects.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "emit/wgsl.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

// C's name of an intrinsic for floating numbers, which C++, CUDA and OpenCL C share, and GLSL's where it computes the
// same; else scalar_math.cpp has it.
struct Spelling {
  std::string_view op, c, glsl;
};
constexpr Spelling kSpellings[] = {
    {"sqrt", "sqrt", "sqrt"},    {"exp", "exp", ""},    {"expm1", "expm1", ""},      {"log", "log", ""},
    {"log1p", "log1p", ""},      {"sin", "sin", ""},    {"cos", "cos", ""},          {"atan", "atan", ""},
    {"tanh", "tanh", ""},        {"erf", "erf", ""},    {"floor", "floor", "floor"}, {"ceil", "ceil", "ceil"},
    {"trunc", "trunc", "trunc"}, {"round", "rint", ""}, {"abs", "fabs", "abs"},      {"pow", "pow", ""},
    {"atan2", "atan2", ""},      {"fmod", "fmod", ""},  {"hypot", "hypot", ""},      {"copysign", "copysign", ""},
};

}  // namespace

const std::vector<Dialect>& dialects() {
  static const std::vector<Dialect> all = {
      {"c++",
       ".hpp",
       "inline ",
       {"bool", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "", "",
        "float", "double", "bp_complex64", "bp_complex128"},
       "re",
       "im",
       true,
       false,
       true,
       "",
       "INT64_C(",
       ")"},
      {"cuda",
       ".cuh",
       "__host__ __device__ inline ",
       {"bool", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "", "",
        "float", "double", "bp_complex64", "bp_complex128"},
       "re",
       "im",
       true,
       false,
       true,
       "",
       "INT64_C(",
       ")"},
      {"glsl",
       ".glsl",
       "",
       {"bool", "int8_t", "int16_t", "int", "int64_t", "uint8_t", "uint16_t", "uint", "uint64_t", "", "", "float",
        "double", "vec2", "dvec2"},
       "x",
       "y",
       false,
       true,
       false,
       "lf",
       "",
       "l"},
      {"opencl",
       ".cl",
       "static inline ",
       {"bool", "char", "short", "int", "long", "uchar", "ushort", "uint", "ulong", "", "", "float", "double", "float2",
        "double2"},
       "x",
       "y",
       true,
       true,
       false,
       "",
       "",
       "L"},
  };
  return all;
}

std::vector<std::string_view> dialect_words() {
  std::vector<std::string_view> words;
  for (const Dialect& dialect : dialects()) words.push_back(dialect.word);
  words.push_back(kWgsl);
  return words;
}

bp_dtype working_integer(bp_dtype dtype) {
  if (dtype == BP_INT64 || dtype == BP_UINT64) return dtype;
  return has(BP_MASK_SIGNED, dtype) ? BP_INT32 : BP_UINT32;
}
bp_dtype unsigned_of(bp_dtype working) { return working == BP_INT64 || working == BP_UINT64 ? BP_UINT64 : BP_UINT32; }

std::string Dialect::cast(bp_dtype dtype, const std::string& value) const {
  return c_casts ? "((" + type(dtype) + ")(" + value + "))" : type(dtype) + "(" + value + ")";
}

std::string Dialect::pair(bp_dtype dtype, const std::string& re_text, const std::string& im_text) const {
  const std::string parts = re_text + ", " + im_text;
  if (is_cpp) return type(dtype) + "{" + parts + "}";
  return c_casts ? "(" + type(dtype) + ")(" + parts + ")" : type(dtype) + "(" + parts + ")";
}

std::string Dialect::floating(bp_dtype dtype, double number) const {
  const std::string name(kDtypeNames[dtype]);
  if (std::isnan(number)) return "bp_nan_" + name + "()";
  if (std::isinf(number)) return (number < 0 ? "-bp_inf_" : "bp_inf_") + name + "()";
  char text[64];
  std::snprintf(text, sizeof text, dtype == BP_FLOAT32 ? "%.9g" : "%.17g", number);
  std::string digits = text;
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  digits += dtype == BP_FLOAT32 ? "f" : std::string(double_suffix);
  return number < 0 ? "(" + digits + ")" : digits;
}

std::string Dialect::number(bp_dtype dtype, double number, int64_t integer) const {
  if (dtype == BP_BOOL) return integer ? "true" : "false";
  if (!has(BP_MASK_INTEGER, dtype)) return floating(dtype, number);
  if (integer >= INT32_MIN && integer <= INT32_MAX) return cast(dtype, std::to_string(integer));
  const auto spelled = [&](int64_t value) {
    return std::string(long_open) + std::to_string(value) + std::string(long_close);
  };
  return cast(dtype, integer == INT64_MIN ? spelled(integer + 1) + " - 1" : spelled(integer));
}

std::string Dialect::intrinsic(std::string_view op, bp_dtype dtype, const std::vector<std::string>& args) const {
  std::string list;
  for (const std::string& arg : args)
    list += (list.empty() ? "" : ", ") + (has(BP_MASK_INTEGER, dtype) ? cast(working_integer(dtype), arg) : arg);
  if (has(BP_MASK_INTEGER, dtype)) {
    const int bits = has(BP_DTYPE_BIT(BP_INT8) | BP_DTYPE_BIT(BP_UINT8), dtype)     ? 8
                     : has(BP_DTYPE_BIT(BP_INT16) | BP_DTYPE_BIT(BP_UINT16), dtype) ? 16
                                                                                    : 32;
    const bp_dtype working = working_integer(dtype);
    if (op.ends_with("_shift"))
      list += ", " + std::to_string(working == BP_INT64 || working == BP_UINT64 ? 64 : bits) + "u";
    return cast(dtype, "bp_" + std::string(op) + "_of_" + std::string(kDtypeNames[working]) + "(" + list + ")");
  }
  const auto* spelling =
      std::find_if(std::begin(kSpellings), std::end(kSpellings), [&](const Spelling& known) { return known.op == op; });
  // OpenCL allows tanh an error where it is 1, too, which a difference from 1 would show.
  if (c_casts && !is_cpp && op == "tanh")
    return "(fabs(" + list + ") > " + floating(dtype, dtype == BP_FLOAT32 ? 10 : 20) + " ? copysign(" +
           floating(dtype, 1) + ", " + list + ") : tanh(" + list + "))";
  if (c_casts) return std::string(spelling->c) + (is_cpp && dtype == BP_FLOAT32 ? "f(" : "(") + list + ")";
  if (!spelling->glsl.empty()) return std::string(spelling->glsl) + "(" + list + ")";
  return "bp_math_" + std::string(op) + "_" + std::string(kDtypeNames[dtype]) + "(" + list + ")";
}

std::string Dialect::convert(bp_dtype from, bp_dtype to, const std::string& value) const {
  const auto zero = [&](bp_dtype dtype) { return number(dtype, 0, 0); };
  if (from == to) return value;
  if (has(BP_MASK_COMPLEX, from)) {
    const bp_dtype part = part_of(from);
    const std::string first = value + "." + std::string(re), second = value + "." + std::string(im);
    if (to == BP_BOOL) return "(" + first + " != " + zero(part) + " || " + second + " != " + zero(part) + ")";
    if (has(BP_MASK_COMPLEX, to))
      return pair(to, convert(part, part_of(to), first), convert(part, part_of(to), second));
    return convert(part, to, first);
  }
  if (has(BP_MASK_COMPLEX, to)) return pair(to, convert(from, part_of(to), value), zero(part_of(to)));
  if (to == BP_BOOL) return "(" + value + " != " + zero(from) + ")";
  if (from == BP_BOOL) return "(" + value + " ? " + number(to, 1, 1) + " : " + zero(to) + ")";
  if (!has(BP_MASK_FLOATING, from) || !has(BP_MASK_INTEGER, to)) return cast(to, value);
  const std::string_view wide = to == BP_UINT64                     ? "uint64"
                                : to == BP_UINT32 && optional_types ? "uint32"
                                : to == BP_INT64 || to == BP_UINT32 ? "int64"
                                                                    : "int32";
  return cast(to, "bp_" + std::string(wide) + "_of_" + std::string(kDtypeNames[from]) + "(" + value + ")");
}

}  // namespace backplane::codegen
