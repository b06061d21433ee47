// The table of builtins, those on dtypes, and lists of any form. Numbers are in builtin_numbers.cpp, lists and axes in
// builtin_lists.cpp.
//
// Pure; new lists live in the call's arena.
#include "record/builtins.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "record/builtin_numbers.hpp"
#include "record/dtype_rules.hpp"
#include "record/number_range.hpp"

namespace backplane::core {
bp_dtype dtype_of(const BuiltinCall& call, const bp_value& v) {
  BP_CHECK(v.tag == BP_TAG_DTYPE && v.u.i >= 0 && v.u.i < BP_DTYPE_COUNT, TYPE, call.op, ": ", call.name,
           " in its formula got ", tag_name(v.tag), "; expected a dtype");
  return static_cast<bp_dtype>(v.u.i);
}

namespace {

bp_value make_dtype(bp_dtype dtype) {
  bp_value v{};
  v.tag = BP_TAG_DTYPE;
  v.u.i = dtype;
  return v;
}

bp_value dtype_is_in(const BuiltinCall& call, bp_dtype_mask mask) {
  return make_bool(is_in(dtype_of(call, call.in[0]), mask));
}

// Precision and range of the floating types: p bits of significand, largest exponent e (IEEE 754 binary formats;
// bfloat16 has binary32's exponent and 8 bits).
struct FloatFormat {
  int precision, exponent;
  double max() const { return std::ldexp(2.0 - std::ldexp(1.0, 1 - precision), exponent); }
  double eps() const { return std::ldexp(1.0, 1 - precision); }
};
FloatFormat format_of(const BuiltinCall& call) {
  const bp_dtype dtype = dtype_of(call, call.in[0]);
  switch (real_dtype(dtype)) {
    case BP_FLOAT16:
      return {11, 15};
    case BP_BFLOAT16:
      return {8, 127};
    case BP_FLOAT32:
      return {24, 127};
    case BP_FLOAT64:
      return {53, 1023};
    default:
      detail::fail(BP_ERROR_DTYPE, call.op, ": ", call.name, " in its formula got ", kDtypeNames[dtype],
                   "; expected a floating or complex dtype");
  }
}

// The first argument where the second holds; else an error that shows a number, a text or a dtype and ends in the
// third.
bp_value require(const BuiltinCall& call, bp_status code) {
  const bp_value &value = call.in[0], &text = call.in[2];
  BP_CHECK(text.tag == BP_TAG_STRING, TYPE, call.op, ": ", call.name, " in its formula got ", tag_name(text.tag),
           "; expected a text");
  if (truth(call.op, call.in[1])) return value;
  const std::string_view expected(text.u.s, text.count);
  if (is_int(value)) detail::fail(code, call.op, ": found ", value.u.i, ", expected ", expected);
  if (value.tag == BP_TAG_FLOAT) detail::fail(code, call.op, ": found ", value.u.f, ", expected ", expected);
  if (value.tag == BP_TAG_STRING)
    detail::fail(code, call.op, ": found '", std::string_view(value.u.s, value.count), "', expected ", expected);
  if (value.tag == BP_TAG_DTYPE)
    detail::fail(BP_ERROR_DTYPE, call.op, ": found dtype ", kDtypeNames[value.u.i], ", expected ", expected);
  detail::fail(code, call.op, ": expected ", expected);
}

// How many arguments a builtin takes, from its parameters.
constexpr uint8_t most_of(std::string_view params) {
  return static_cast<uint8_t>(params.ends_with('*') ? kMaxArgs : params.size());
}

constexpr auto kBuiltins = [] {
#define BP_BUILTIN(function, name, params, required, result, passes) \
  Builtin{name, required, most_of(params), passes != 0, builtin::function},
  std::array table{BP_BUILTIN_FUNCTIONS(BP_BUILTIN) BP_BUILTIN_OPERATORS(BP_BUILTIN)};
#undef BP_BUILTIN
  std::ranges::sort(table, {}, &Builtin::name);
  return table;
}();

// Where in the table the names begin whose first byte is not below a given one: the record of every op names many.
constexpr auto kStarts = [] {
  std::array<uint8_t, 257> starts{};
  static_assert(kBuiltins.size() < 256);
  for (size_t byte = 0; byte < starts.size(); ++byte)
    starts[byte] = static_cast<uint8_t>(std::ranges::count_if(
        kBuiltins, [&](const Builtin& b) { return static_cast<unsigned char>(b.name[0]) < byte; }));
  return starts;
}();

}  // namespace

namespace builtin {

bp_value promote(const BuiltinCall& call) {
  const bp_dtype a = dtype_of(call, call.in[0]), b = dtype_of(call, call.in[1]);
  BP_CHECK(kPromotion[a][b] != BP_DTYPE_NONE, DTYPE, call.op, ": ", kDtypeNames[a], " and ", kDtypeNames[b],
           " have no common dtype");
  return make_dtype(kPromotion[a][b]);
}

bp_value dtype_of_number(const BuiltinCall& call) {
  BP_CHECK(is_number(call.in[0]), TYPE, call.op, ": ", call.name, " in its formula got ", tag_name(call.in[0].tag),
           "; expected a number");
  return make_dtype(number_dtype(call.in[0].tag));
}

bp_value real_dtype_of(const BuiltinCall& call) { return make_dtype(real_dtype(dtype_of(call, call.in[0]))); }
bp_value complex_dtype_of(const BuiltinCall& call) { return make_dtype(complex_dtype(dtype_of(call, call.in[0]))); }
bp_value is_bool(const BuiltinCall& call) { return dtype_is_in(call, BP_MASK_BOOL); }
bp_value is_complex(const BuiltinCall& call) { return dtype_is_in(call, BP_MASK_COMPLEX); }
bp_value is_floating(const BuiltinCall& call) { return dtype_is_in(call, BP_MASK_FLOATING); }
bp_value is_integer(const BuiltinCall& call) { return dtype_is_in(call, BP_MASK_INTEGER); }
bp_value require_shape(const BuiltinCall& call) { return require(call, BP_ERROR_SHAPE); }
bp_value require_value(const BuiltinCall& call) { return require(call, BP_ERROR_VALUE); }
bp_value finfo_max(const BuiltinCall& call) { return make_float(format_of(call).max()); }
bp_value finfo_min(const BuiltinCall& call) {
  const bp_dtype dtype = dtype_of(call, call.in[0]);
  if (is_in(dtype, BP_MASK_UNSIGNED)) return make_int(0);
  if (is_in(dtype, BP_MASK_SIGNED)) return make_int(INT64_MIN >> (64 - 8 * kItemSize[dtype]));
  return make_float(-format_of(call).max());
}
bp_value finfo_eps(const BuiltinCall& call) { return make_float(format_of(call).eps()); }

// The number, which must be one that the dtype holds.
bp_value in_range(const BuiltinCall& call) {
  const bp_dtype dtype = dtype_of(call, call.in[1]);
  if (!is_number(call.in[0]) || holds_number(dtype, call.in[0])) return call.in[0];
  fail_number(dtype, call.in[0], std::string(call.op));
}

}  // namespace builtin

const Builtin* find_builtin(std::string_view name) noexcept {
  const auto byte = static_cast<unsigned char>(name.empty() ? '\0' : name[0]);
  for (size_t i = kStarts[byte]; i < kStarts[byte + 1u]; ++i)
    if (kBuiltins[i].name == name) return &kBuiltins[i];
  return nullptr;
}

bp_value list_element(const bp_value& list, uint32_t i) {
  bp_value element{};
  element.tag = list.tag & static_cast<uint16_t>(~BP_TAG_LIST);
  switch (list.tag) {
    case BP_TAG_VALUE_LIST:
      return list.u.values[i];
    case BP_TAG_BOOL_LIST:
      element.u.i = list.u.bools[i];
      break;
    case BP_TAG_FLOAT_LIST:
      element.u.f = list.u.floats[i];
      break;
    case BP_TAG_TENSOR_LIST:
      element.u.t = list.u.tensors[i];
      if (!element.u.t) element.tag = BP_TAG_ABSENT;
      break;
    default:
      element.u.i = list.u.ints[i];
  }
  return element;
}

bp_value make_list(ValueArena& arena, std::span<const bp_value> values, uint16_t tag_of_empty) {
  bp_value list{};
  list.count = static_cast<uint32_t>(values.size());
  list.tag = tag_of_empty;
  if (values.empty()) return list;
  const uint16_t tag = values[0].tag;
  const bool same = std::ranges::all_of(values, [&](const bp_value& v) { return v.tag == tag; });
  BP_CHECK(std::ranges::none_of(values,
                                [](const bp_value& v) { return v.tag == BP_TAG_INT && (v.flags & BP_VALUE_UINT64); }),
           VALUE, "a list in a formula got an int that exceeds 64 bits");
  const bool tensors =
      std::ranges::any_of(values, [](const bp_value& v) { return v.tag == BP_TAG_TENSOR; }) &&
      std::ranges::all_of(values, [](const bp_value& v) { return v.tag == BP_TAG_TENSOR || v.tag == BP_TAG_ABSENT; });
  if (tensors) {
    auto** array = arena.array<bp_tensor*>(values.size());
    for (size_t i = 0; i < values.size(); ++i) array[i] = values[i].tag == BP_TAG_TENSOR ? values[i].u.t : nullptr;
    list.u.tensors = array;
    list.tag = BP_TAG_TENSOR_LIST;
  } else if (same && tag == BP_TAG_INT) {
    auto* array = arena.array<int64_t>(values.size());
    for (size_t i = 0; i < values.size(); ++i) array[i] = values[i].u.i;
    list.u.ints = array;
    list.tag = BP_TAG_INT_LIST;
  } else if (same && tag == BP_TAG_FLOAT) {
    auto* array = arena.array<double>(values.size());
    for (size_t i = 0; i < values.size(); ++i) array[i] = values[i].u.f;
    list.u.floats = array;
    list.tag = BP_TAG_FLOAT_LIST;
  } else if (same && tag == BP_TAG_BOOL) {
    auto* array = arena.array<uint8_t>(values.size());
    for (size_t i = 0; i < values.size(); ++i) array[i] = values[i].u.i != 0;
    list.u.bools = array;
    list.tag = BP_TAG_BOOL_LIST;
  } else {
    auto* array = arena.array<bp_value>(values.size());
    std::copy(values.begin(), values.end(), array);
    list.u.values = array;
    list.tag = BP_TAG_VALUE_LIST;
  }
  return list;
}

}  // namespace backplane::core
