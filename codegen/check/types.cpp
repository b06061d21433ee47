// See types.hpp.
#include "check/types.hpp"

#include "backplane/abi/vocabulary.h"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

using Kind = Type::Kind;

const std::vector<BuiltinSpec>& builtins() {
#define BP_BUILTIN(function, name, params, required, result, passes) {name, params, required, result},
  static const std::vector<BuiltinSpec> table = {BP_BUILTIN_FUNCTIONS(BP_BUILTIN)};
#undef BP_BUILTIN
  return table;
}

}  // namespace

std::string describe(const Type& type) {
  static constexpr const char* kNames[] = {"a value",
                                           "none",
                                           "a Tensor",
                                           "a list of Tensors",
                                           "several results",
                                           "an int",
                                           "a number",
                                           "a bool",
                                           "a list of ints",
                                           "a list of numbers",
                                           "a list with absent elements",
                                           "a dtype",
                                           "a device",
                                           "a text",
                                           "a Generator",
                                           "a Graph"};
  return std::string(kNames[static_cast<int>(type.kind)]) + (type.optional ? " or none" : "");
}

std::string describe(const Arg& arg) {
  const std::string type(type_name(arg.type));
  std::string text = "a " + type;
  if (type == "Axis" || type == "Axes" || type == "Index") text = "an " + type;
  if (arg.has(BP_ARG_LIST)) text = "a list of " + type;
  return text + (arg.has(BP_ARG_OPTIONAL) ? " or none" : "");
}

Type type_of(const Arg& arg) {
  Type type;
  type.optional = arg.has(BP_ARG_OPTIONAL);
  type.optional_elements = arg.has(BP_ARG_OPTIONAL_ELEMENTS);
  switch (arg.type) {
    case BP_TYPE_TENSOR:
      type.kind = arg.has(BP_ARG_LIST) ? Kind::kTensorList : Kind::kTensor;
      break;
    case BP_TYPE_SCALAR:
      type.kind = arg.has(BP_ARG_LIST) ? Kind::kNumbers : Kind::kNumber;
      break;
    case BP_TYPE_AXIS:
    case BP_TYPE_SIZE:
    case BP_TYPE_INDEX:
      type.kind = !arg.has(BP_ARG_LIST) ? Kind::kInt : type.optional_elements ? Kind::kValues : Kind::kInts;
      break;
    case BP_TYPE_AXES:
    case BP_TYPE_SHAPE:
      type.kind = Kind::kInts;
      break;
    case BP_TYPE_DTYPE:
      type.kind = Kind::kDtype;
      break;
    case BP_TYPE_DEVICE:
      type.kind = Kind::kDevice;
      break;
    case BP_TYPE_GENERATOR:
      type.kind = Kind::kGenerator;
      break;
    case BP_TYPE_BOOL:
      type.kind = arg.has(BP_ARG_LIST) ? Kind::kNumbers : Kind::kBool;
      break;
    case BP_TYPE_STR:
      type.kind = Kind::kStr;
      break;
    case BP_TYPE_GRAPH:
      type.kind = Kind::kGraph;
      break;
    default:
      break;
  }
  return type;
}

Type join(const Type& a, const Type& b, bool& ok) {
  ok = true;
  if (a.is(Kind::kAny)) return b;
  if (b.is(Kind::kAny)) return a;
  Type result = a;
  result.optional = a.optional || b.optional || a.is(Kind::kNone) || b.is(Kind::kNone);
  result.optional_elements = a.optional_elements || b.optional_elements;
  if (a.kind == b.kind && a.op == b.op) return result;
  if (a.is(Kind::kNone) || b.is(Kind::kNone)) {
    result.kind = a.is(Kind::kNone) ? b.kind : a.kind;
    result.op = a.is(Kind::kNone) ? b.op : a.op;
  } else if (a.is_number() && b.is_number()) {
    result.kind = Kind::kNumber;
  } else if ((a.is(Kind::kTensor) && b.is_number()) || (b.is(Kind::kTensor) && a.is_number())) {
    result.kind = Kind::kTensor;
  } else if (a.is_list() && b.is_list() && !a.is(Kind::kTensorList) && !b.is(Kind::kTensorList)) {
    result.kind = a.is(Kind::kValues) || b.is(Kind::kValues) ? Kind::kValues : Kind::kNumbers;
  } else {
    ok = false;
    result = Type{};
  }
  return result;
}

bool fits(const Type& type, const Arg& arg) {
  if (type.is(Kind::kAny)) return true;
  if (type.is(Kind::kNone) || type.optional) {
    if (!arg.has(BP_ARG_OPTIONAL)) return false;
    if (type.is(Kind::kNone)) return true;
  }
  const bool ints = type.is(Kind::kInts) || (type.is(Kind::kValues) && arg.has(BP_ARG_OPTIONAL_ELEMENTS));
  const bool list = arg.has(BP_ARG_LIST);
  switch (arg.type) {
    case BP_TYPE_TENSOR:
      if (!list) return type.is(Kind::kTensor) || type.is_number();
      // An empty list literal is a list of ints until it is used.
      return (type.is(Kind::kTensorList) && (!type.optional_elements || arg.has(BP_ARG_OPTIONAL_ELEMENTS)));
    case BP_TYPE_SCALAR:
      return list ? type.is(Kind::kInts) || type.is(Kind::kNumbers) : type.is_number();
    case BP_TYPE_AXIS:
    case BP_TYPE_SIZE:
    case BP_TYPE_INDEX:
      return list ? ints : type.is(Kind::kInt);
    case BP_TYPE_AXES:
    case BP_TYPE_SHAPE:
      return type.is(Kind::kInts);
    case BP_TYPE_BOOL:
      return list ? type.is(Kind::kNumbers) : type.is(Kind::kBool);
    case BP_TYPE_DTYPE:
      return type.is(Kind::kDtype);
    case BP_TYPE_DEVICE:
      return type.is(Kind::kDevice);
    case BP_TYPE_GENERATOR:
      return type.is(Kind::kGenerator);
    case BP_TYPE_STR:
      return type.is(Kind::kStr);
    case BP_TYPE_GRAPH:
      return type.is(Kind::kGraph);
    default:
      return false;
  }
}

const BuiltinSpec* find_builtin(std::string_view name) {
  for (const BuiltinSpec& spec : builtins())
    if (spec.name == name) return &spec;
  return nullptr;
}

std::vector<std::string_view> builtin_names() {
  std::vector<std::string_view> names;
  for (const BuiltinSpec& spec : builtins()) names.push_back(spec.name);
  return names;
}

}  // namespace backplane::codegen
