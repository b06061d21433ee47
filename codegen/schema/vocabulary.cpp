// The tables: the contract's tables from its lists, the words of the YAML form here; docs/reference/ops-yaml.md
// describes each.
#include "schema/vocabulary.hpp"

#include <algorithm>

#include "backplane/abi/vocabulary.h"

namespace backplane::codegen {

#define BP_NAME(constant, number, name, type, bytes, code) name,
const std::string_view kDtypeNames[BP_DTYPE_COUNT] = {BP_DTYPES(BP_NAME)};
#undef BP_NAME

const std::vector<TypeWord>& type_words() {
#define BP_WORD(constant, number, word) {word, number},
  static const std::vector<TypeWord> words = {BP_TYPES(BP_WORD)};
#undef BP_WORD
  return words;
}

std::string type_meant(std::string_view word) {
  static constexpr std::pair<std::string_view, const char*> kMeant[] = {
      {"float", "Scalar, a number"},
      {"double", "Scalar, a number"},
      {"number", "Scalar, a number"},
      {"complex", "Scalar, a number"},
      {"int", "Size for a count, Index for a position, Axis for an axis, Scalar for any number"},
      {"int64", "Size for a count, Index for a position, Axis for an axis, Scalar for any number"},
      {"int64_t", "Size for a count, Index for a position, Axis for an axis, Scalar for any number"},
      {"SymInt", "Size for a count, Index for a position, Axis for an axis, Scalar for any number"},
      {"string", "str"},
      {"boolean", "bool"},
      {"ScalarType", "Dtype"},
      {"tensor", "Tensor"},
      {"Array", "Tensor"},
      {"array", "Tensor"}};
  for (const auto& [other, here] : kMeant)
    if (word == other) return std::string("; write ") + here;
  return "";
}

std::string_view type_name(uint16_t type) {
  for (const TypeWord& word : type_words())
    if (word.type == type) return word.name;
  return "?";
}

int find_dtype(std::string_view name) {
  for (int i = 0; i < BP_DTYPE_COUNT; ++i)
    if (kDtypeNames[i] == name) return i;
  return -1;
}

const std::vector<DtypeClass>& dtype_classes() {
  static const std::vector<DtypeClass> classes = {{"any", BP_MASK_ANY},
                                                  {"bool", BP_MASK_BOOL},
                                                  {"integer", BP_MASK_INTEGER},
                                                  {"integer_or_bool", BP_MASK_INTEGER | BP_MASK_BOOL},
                                                  {"floating", BP_MASK_FLOATING},
                                                  {"complex", BP_MASK_COMPLEX},
                                                  {"inexact", kInexact},
                                                  {"real", BP_MASK_INTEGER | BP_MASK_FLOATING},
                                                  {"real_or_bool", BP_MASK_INTEGER | BP_MASK_FLOATING | BP_MASK_BOOL},
                                                  {"numeric", BP_MASK_INTEGER | kInexact},
                                                  {"numeric_or_bool", BP_MASK_ANY}};
  return classes;
}

const DtypeClass* find_dtype_class(std::string_view name) {
  for (const DtypeClass& c : dtype_classes())
    if (c.name == name) return &c;
  return nullptr;
}

const std::vector<ShapeWordSpec>& shape_words() {
#define BP_WORD(function, word, params, batch) {word, params},
  static const std::vector<ShapeWordSpec> words = {BP_SHAPE_WORDS(BP_WORD)};
#undef BP_WORD
  return words;
}

const ShapeWordSpec* find_shape_word(std::string_view name) {
  for (const ShapeWordSpec& word : shape_words())
    if (word.name == name) return &word;
  return nullptr;
}

const std::vector<std::string_view>& entry_keys() {
  static const std::vector<std::string_view> keys = {
      "op",       "doc",     "kind",   "primitive", "host",      "dtypes",    "shape",    "alias",
      "put",      "partial", "vjp",    "jvp",       "zeros",     "nondiff",   "batch",    "decompose",
      "variants", "random",  "errors", "samples",   "large",     "tolerance", "compare",  "except",
      "tags",     "aliases", "source", "example",   "since",     "revisions", "operator", "let",
      "choices",  "moves",   "scalar", "fuzz",      "spellings", "args",      "faults",   "region"};
  return keys;
}

const std::vector<OperatorWord>& operator_words() {
  static const std::vector<OperatorWord> words = {{"+", 2}, {"-", 2},  {"*", 2},  {"/", 2},  {"//", 2}, {"%", 2},
                                                  {"@", 2}, {"**", 2}, {"==", 2}, {"!=", 2}, {"<", 2},  {"<=", 2},
                                                  {">", 2}, {">=", 2}, {"-", 1},  {"mT", 1}};
  return words;
}

bool is_reserved_name(std::string_view name) {
  static constexpr std::string_view kOfRules[] = {"g", "t", "v"};
  return is_reserved_argument(name) || std::find(std::begin(kOfRules), std::end(kOfRules), name) != std::end(kOfRules);
}

bool is_reserved_argument(std::string_view name) {
  static constexpr std::string_view kReserved[] = {"out",  "needs", "let", "if",  "else", "true", "false",
                                                   "none", "and",   "or",  "not", "in",   "self"};
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

const std::vector<std::string_view>& laws() {
  static const std::vector<std::string_view> words = {
      "gradient",  "second_order", "forward", "vmap",      "vmap_grad",     "grad_vmap", "jvp_grad",
      "reverse",   "trace",        "meta",    "decompose", "decompose_vjp", "inplace",   "out",
      "zeros",     "alias",        "export",  "dtypes",    "native",        "device",    "numpy",
      "zero_size", "errors",       "layout",  "half",      "edges",         "expect",    "padding"};
  return words;
}

const std::vector<std::string_view>& generators() {
  static const std::vector<std::string_view> words = {"uniform",     "normal", "distinct", "away_from",
                                                      "positive",    "spd",    "index",    "bool",
                                                      "permutation", "values", "last"};
  return words;
}

const std::vector<std::string_view>& layouts() {
  static const std::vector<std::string_view> words = {"contiguous", "strided", "zero_stride", "offset", "transposed"};
  return words;
}

const std::vector<std::string_view>& comparisons() {
  static const std::vector<std::string_view> words = {"close", "exact", "up_to_phase", "distribution", "metadata"};
  return words;
}

const std::vector<std::string_view>& error_names() {
  static const std::vector<std::string_view> words = {"ValueError", "TypeError",   "ShapeError",          "DtypeError",
                                                      "IndexError", "DeviceError", "NotImplementedError", "DataError"};
  return words;
}

}  // namespace backplane::codegen
