// The types of values in formulas, and the builtin functions with their types.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schema/model.hpp"

namespace backplane::codegen {

struct Type {
  enum class Kind : uint8_t {
    kAny,  // of something that has been reported already
    kNone,
    kTensor,
    kTensorList,
    kTuple,  // the results of a call with several
    kInt,
    kNumber,  // int, float, bool or complex
    kBool,
    kInts,
    kNumbers,
    kValues,  // a list with absent elements: bp_value list
    kDtype,
    kDevice,
    kStr,
    kGenerator,
    kGraph
  };
  Kind kind = Kind::kAny;
  bool optional = false;           // may be none
  bool optional_elements = false;  // of a list
  const Entry* op = nullptr;       // of a tuple

  static Type of(Kind k) {
    Type type;
    type.kind = k;
    return type;
  }
  bool is(Kind k) const { return kind == k; }
  bool is_number() const { return kind == Kind::kInt || kind == Kind::kNumber || kind == Kind::kBool; }
  bool is_list() const {
    return kind == Kind::kInts || kind == Kind::kNumbers || kind == Kind::kValues || kind == Kind::kTensorList;
  }
};

std::string describe(const Type& type);
std::string describe(const Arg& arg);
Type type_of(const Arg& arg);

// The type of a value that is one or the other; kAny with `ok` false where they do not go together.
Type join(const Type& a, const Type& b, bool& ok);

// May `type` stand where `arg` is expected? (A lone int for a list of ints is wrapped by the caller.)
bool fits(const Type& type, const Arg& arg);

// A row of BP_BUILTIN_FUNCTIONS; its letters are described there.
struct BuiltinSpec {
  std::string_view name;
  std::string_view params;
  size_t required;
  char result;

  bool any_number() const { return params.back() == '*'; }
  // A lone list, which a record may give where there is any number, is not written in YAML.
  size_t least() const { return any_number() ? 2 : required; }
  char letter(size_t i) const { return params[any_number() ? 0 : i]; }
};
const BuiltinSpec* find_builtin(std::string_view name);
std::vector<std::string_view> builtin_names();

}  // namespace backplane::codegen
