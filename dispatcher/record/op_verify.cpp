// What a copied record claims of its signature is checked here, and of its rules and formulas in op_verify_rules.cpp,
// so that no later code asks again: a call trusts its record.
//
// Throws Error(BP_ERROR_VALUE) with the op's name and the first fault. Also fills fields derived from the checked
// parts (masks of arguments) and normalises arguments: an optional one has a default, and a default number in a tensor
// position carries its flag.
#include "record/op_verify.hpp"

#include <algorithm>
#include <bit>

#include "backplane/abi/signature.h"
#include "record/op_arena.hpp"

namespace backplane::core {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_identifier(std::string_view text) {
  return !text.empty() && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

bool is_default_number(uint16_t tag) { return tag >= BP_TAG_BOOL && tag <= BP_TAG_COMPLEX; }

uint16_t element_tag(uint16_t type) {
  switch (type) {
    case BP_TYPE_AXIS:
    case BP_TYPE_SIZE:
    case BP_TYPE_INDEX:
      return BP_TAG_INT;
    case BP_TYPE_BOOL:
      return BP_TAG_BOOL;
    case BP_TYPE_STR:
      return BP_TAG_STRING;
    case BP_TYPE_DTYPE:
      return BP_TAG_DTYPE;
    default:
      return BP_TAG_ABSENT;  // no constant of that type exists
  }
}

bool default_fits(const bp_arg_def& arg) {
  const bp_value& value = arg.default_value;
  if (value.tag == BP_TAG_ABSENT) return (arg.flags & BP_ARG_OPTIONAL) != 0;
  const bool takes_numbers = arg.type == BP_TYPE_SCALAR || arg.type == BP_TYPE_TENSOR;
  if (arg.type == BP_TYPE_AXES || arg.type == BP_TYPE_SHAPE) return value.tag == BP_TAG_INT_LIST;
  if (!(arg.flags & BP_ARG_LIST)) {
    if (takes_numbers) return is_default_number(value.tag);
    if (arg.type == BP_TYPE_SIZE && value.u.i < 0) return false;
    return value.tag == element_tag(arg.type) && value.tag != BP_TAG_ABSENT;
  }
  if (!(value.tag & BP_TAG_LIST)) return false;
  if (value.count == 0) return true;
  if (value.tag == BP_TAG_VALUE_LIST) {
    return std::all_of(value.u.values, value.u.values + value.count, [&](const bp_value& element) {
      if (element.tag == BP_TAG_ABSENT) return (arg.flags & BP_ARG_OPTIONAL_ELEMENTS) != 0;
      return takes_numbers ? is_default_number(element.tag) : element.tag == element_tag(arg.type);
    });
  }
  const uint16_t element = value.tag & ~BP_TAG_LIST;
  return arg.type == BP_TYPE_SCALAR ? is_default_number(element) : element == element_tag(arg.type);
}

void verify_arg(const OpRecord& op, bp_arg_def& arg) {
  require(op, is_identifier(arg.name), "the argument name '", arg.name, "' is not an identifier");
  require(op, arg.type >= BP_TYPE_TENSOR && arg.type < BP_TYPE_COUNT, "argument '", arg.name, "' has the unknown type ",
          arg.type);
  require(op, !(arg.flags & BP_ARG_LIST) || (arg.type != BP_TYPE_AXES && arg.type != BP_TYPE_SHAPE), "argument '",
          arg.name, "' is a list of lists");
  require(op, (arg.flags & BP_ARG_LIST) || !(arg.flags & BP_ARG_OPTIONAL_ELEMENTS), "argument '", arg.name,
          "' has optional elements but is not a list");
  if (arg.flags & BP_ARG_HAS_DEFAULT) {
    require(op, default_fits(arg), "the default of argument '", arg.name, "' is not of the argument's type");
  } else if (arg.flags & BP_ARG_OPTIONAL) {
    arg.default_value = {};
    arg.flags |= BP_ARG_HAS_DEFAULT;
  }
  require(op, arg.since <= op.def.revision, "argument '", arg.name, "' is of revision ", arg.since,
          ", but the signature is of revision ", op.def.revision);
  require(op, arg.since == 0 || (arg.flags & BP_ARG_HAS_DEFAULT), "argument '", arg.name,
          "' was added later and has no default");
  if (arg.type == BP_TYPE_TENSOR && is_default_number(arg.default_value.tag))
    arg.default_value.flags |= BP_VALUE_NUMBER;
}

void verify_args(OpRecord& op) {
  bool keyword_only = false;
  bool positional_only = true;
  bool has_default = false;
  uint32_t since = 0;
  for (uint32_t i = 0; i < op.args.size(); ++i) {
    bp_arg_def& arg = const_cast<bp_arg_def&>(op.args[i]);  // the arena's, and ours
    verify_arg(op, arg);
    for (uint32_t j = 0; j < i; ++j)
      require(op, std::string_view(arg.name) != op.args[j].name, "two arguments are named '", arg.name, "'");
    require(op, arg.since >= since, "argument '", arg.name, "' is older than the one before it");
    since = arg.since;
    const bool keyword = (arg.flags & BP_ARG_KEYWORD_ONLY) != 0;
    require(op, keyword || !keyword_only, "argument '", arg.name, "' is positional after a keyword-only one");
    keyword_only = keyword;
    const bool by_position = (arg.flags & BP_ARG_POSITIONAL_ONLY) != 0;
    require(op, !by_position || (!keyword && positional_only), "argument '", arg.name,
            "' is positional-only after one that is not");
    positional_only = by_position;
    if (arg.flags & BP_ARG_HAS_DEFAULT) {
      has_default = true;
    } else {
      require(op, keyword || !has_default, "argument '", arg.name, "' has no default but follows one that has");
      op.n_required = i + 1;
    }
    if (arg.type == BP_TYPE_AXIS || arg.type == BP_TYPE_AXES) op.axis_args |= uint64_t{1} << i;
    if (arg.type != BP_TYPE_TENSOR) continue;
    op.tensor_args |= uint64_t{1} << i;
    if (!(arg.flags & BP_ARG_OPTIONAL)) op.needed_tensors |= uint64_t{1} << i;
    if (arg.flags & BP_ARG_LIST) op.simple_tensors = false;
  }
}

void verify_accepts(OpRecord& op) {
  const uint64_t all = op.args.size() == 64 ? ~uint64_t{0} : (uint64_t{1} << op.args.size()) - 1;
  require(op, (op.def.promote & ~all) == 0, "`promote` names an argument beyond the last");
  auto* accepts = const_cast<bp_dtype_mask*>(op.accepts.data());
  for (uint32_t i = 0; i < op.args.size(); ++i) {
    const bool tensor = (op.tensor_args >> i) & 1;
    const bool promoted = (op.def.promote >> i) & 1;
    require(op, tensor || op.args[i].type == BP_TYPE_SCALAR || (!accepts[i] && !promoted), "argument '",
            op.args[i].name, "' has a dtype rule but is not a tensor or a Scalar");
    if (tensor && !accepts[i]) accepts[i] = BP_MASK_ANY;
    if (!accepts[i]) continue;
    if (promoted) op.promote_accepts &= accepts[i];
    if (!promoted && accepts[i] != BP_MASK_ANY) op.checked_args |= uint64_t{1} << i;
  }
  if (op.checked_args || (op.def.promote != 1 && op.def.promote != 3)) return;
  op.n_alike = static_cast<uint8_t>(std::popcount(op.def.promote));
  op.alike_dtypes = op.promote_accepts;
  if (op.def.dtype_flags & BP_DTYPE_TO_FLOATING) op.alike_dtypes &= BP_MASK_FLOATING | BP_MASK_COMPLEX;
}

void verify_dtype_rule(const OpRecord& op, const bp_result_dtype& rule) {
  const auto known = [](uint32_t dtype) { return dtype < BP_DTYPE_COUNT; };
  switch (rule.kind) {
    case BP_RESULT_DTYPE_FIXED:
      require(op, known(rule.param), "a result has the unknown dtype ", rule.param);
      break;
    case BP_RESULT_DTYPE_OF_ARG:
      require(op, is_type(op, rule.param, BP_TYPE_TENSOR), "a result's dtype comes from argument ", rule.param,
              ", which is not a tensor");
      break;
    case BP_RESULT_DTYPE_FROM_ARG:
      require(op, is_type(op, rule.param, BP_TYPE_DTYPE) && !(op.args[rule.param].flags & BP_ARG_LIST),
              "a result's dtype is given by argument ", rule.param, ", which is not a Dtype");
      require(op,
              rule.fallback <= BP_RESULT_DTYPE_ACCUMULATE && rule.fallback != BP_RESULT_DTYPE_OF_ARG &&
                  rule.fallback != BP_RESULT_DTYPE_FROM_ARG,
              "a result's dtype has the fallback ", rule.fallback, ", which needs a parameter or is unknown");
      require(op, rule.fallback != BP_RESULT_DTYPE_FIXED || known(rule.fallback_param),
              "a result's dtype falls back to the unknown dtype ", rule.fallback_param);
      break;
    case BP_RESULT_DTYPE_FUNCTION:
      require(op, op.def.dtype_fn != nullptr, "a result's dtype is given by `dtype_fn`, which is NULL");
      break;
    default:
      require(op, rule.kind <= BP_RESULT_DTYPE_ACCUMULATE, "a result has a dtype rule of the unknown kind ", rule.kind);
  }
}

}  // namespace

void verify_name(std::string_view name) {
  const size_t colons = name.find("::");
  std::string_view base = colons == std::string_view::npos ? std::string_view{} : name.substr(colons + 2);
  const size_t dot = base.find('.');
  const bool overload_fits = dot == std::string_view::npos || is_identifier(base.substr(dot + 1));
  if (dot != std::string_view::npos) base = base.substr(0, dot);
  BP_CHECK(
      colons != std::string_view::npos && is_identifier(name.substr(0, colons)) && is_identifier(base) && overload_fits,
      VALUE, "op record '", name, "': the name must be namespace::name or namespace::name.overload");
}

void verify_signature(OpRecord& op) {
  verify_args(op);
  for (size_t i = 0; i < op.results.size(); ++i) {
    const bp_result_def& result = op.results[i];
    require(op, is_identifier(result.name), "the result name '", result.name, "' is not an identifier");
    require(op, result.type == BP_TYPE_TENSOR, "result '", result.name, "' has the type ", result.type,
            "; results are tensors");
    for (size_t j = 0; j < i; ++j)
      require(op, std::string_view(result.name) != op.results[j].name, "two results are named '", result.name, "'");
  }
  require(op, !op.results.empty(), "it has no result");
  verify_accepts(op);
  require(op, op.dtypes.size() == op.results.size(), "it has ", op.results.size(), " results but ", op.dtypes.size(),
          " dtype rules");
  for (const bp_result_dtype& rule : op.dtypes) verify_dtype_rule(op, rule);
  op.adds_in_stated =
      op.dtypes[0].kind == BP_RESULT_DTYPE_FROM_ARG && op.dtypes[0].fallback == BP_RESULT_DTYPE_ACCUMULATE;
}

}  // namespace backplane::core
