// The fixed words of the format as tables: types, dtypes, dtype classes, shape words, keys, laws, generators.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/abi/op.h"

namespace backplane::codegen {

struct TypeWord {
  std::string_view name;
  uint16_t type;
};
const std::vector<TypeWord>& type_words();
std::string_view type_name(uint16_t type);
// For a type word of another language: "; write Scalar, a number". Empty: unknown.
std::string type_meant(std::string_view word);

extern const std::string_view kDtypeNames[BP_DTYPE_COUNT];
int find_dtype(std::string_view name);  // -1: none

struct DtypeClass {
  std::string_view name;
  bp_dtype_mask mask;
};
const std::vector<DtypeClass>& dtype_classes();
const DtypeClass* find_dtype_class(std::string_view name);
inline constexpr bp_dtype_mask kInexact = BP_MASK_FLOATING | BP_MASK_COMPLEX;

// A row of BP_SHAPE_WORDS.
struct ShapeWordSpec {
  std::string_view name;
  std::string_view params;
};
const std::vector<ShapeWordSpec>& shape_words();
const ShapeWordSpec* find_shape_word(std::string_view name);

// What an entry's `operator` may be, and the number of Tensors that it stands between or at; mT follows a dot.
struct OperatorWord {
  std::string_view symbol;
  size_t operands;
};
const std::vector<OperatorWord>& operator_words();

// Names that formulas, and methods in Python, give a meaning of their own. An argument may hide the numbers inf, nan
// and pi.
bool is_reserved_name(std::string_view name);
// Those that no argument may have. One that is called g, t or v hides the cotangent, the tangent or the piece, which
// are then written out.
bool is_reserved_argument(std::string_view name);

const std::vector<std::string_view>& entry_keys();
const std::vector<std::string_view>& laws();
const std::vector<std::string_view>& generators();
const std::vector<std::string_view>& layouts();
const std::vector<std::string_view>& comparisons();
const std::vector<std::string_view>& error_names();

}  // namespace backplane::codegen
