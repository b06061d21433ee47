// Which functions an entry has, and the order in which they are made; see scalar.hpp.
#include "check/scalar.hpp"

#include <algorithm>

#include "check/scalar_compiler.hpp"
#include "schema/identifiers.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

const Arg* dtype_argument(const Entry& entry) {
  for (const Arg& arg : entry.signature.args)
    if (arg.type == BP_TYPE_DTYPE) return &arg;
  return nullptr;
}

// `asked` for where a Dtype argument says it; BP_DTYPE_NONE where nothing here does.
bp_dtype result_dtype(const Entry& entry, bp_dtype compute, bp_dtype asked) {
  const bp_result_dtype& rule = entry.dtypes.results[0];
  switch (rule.kind) {
    case BP_RESULT_DTYPE_COMPUTE:
      return compute;
    case BP_RESULT_DTYPE_FIXED:
      return static_cast<bp_dtype>(rule.param);
    case BP_RESULT_DTYPE_REAL:
      return part_of(compute);
    case BP_RESULT_DTYPE_COMPLEX:
      return complex_of(compute);
    case BP_RESULT_DTYPE_OF_ARG:
      return param_dtype(entry, rule.param, compute);
    case BP_RESULT_DTYPE_FROM_ARG:
      return asked;
    default:
      return BP_DTYPE_NONE;
  }
}

}  // namespace

bp_dtype part_of(bp_dtype dtype) {
  if (dtype == BP_COMPLEX64) return BP_FLOAT32;
  return dtype == BP_COMPLEX128 ? bp_dtype{BP_FLOAT64} : dtype;
}
bp_dtype complex_of(bp_dtype dtype) {
  if (dtype == BP_FLOAT32) return BP_COMPLEX64;
  return dtype == BP_FLOAT64 ? bp_dtype{BP_COMPLEX128} : bp_dtype{BP_DTYPE_NONE};
}

std::string why_not_elementwise(const Entry& entry) {
  const Signature& signature = entry.signature;
  if (signature.results.size() != 1 || signature.results[0].is_list) return "has several results";
  if (entry.shapes.size() != 1 || !entry.shapes[0].expr || entry.shapes[0].expr->name != "broadcast")
    return "is not elementwise: its shape is not broadcast(…)";
  for (const Arg& arg : signature.args) {
    const bool scalar = arg.is_tensor() || arg.type == BP_TYPE_SCALAR || arg.type == BP_TYPE_DTYPE;
    if (!scalar || arg.has(BP_ARG_LIST) || arg.has(BP_ARG_OPTIONAL) || arg.has(BP_ARG_OPTIONAL_ELEMENTS))
      return "takes '" + arg.name + "', which is not an element or a number";
  }
  if (!entry.dtypes.promote) return "has no compute dtype";
  return "";
}

bp_dtype_mask scalar_dtypes(const Entry& entry) {
  bp_dtype_mask mask = kScalarDtypes;
  for (size_t i = 0; i < entry.signature.args.size(); ++i)
    if (entry.dtypes.promote >> i & 1) mask &= entry.dtypes.accepts[i];
  return mask;
}

bp_dtype param_dtype(const Entry& entry, size_t arg, bp_dtype compute) {
  const bool promotes = (entry.dtypes.promote >> arg & 1) != 0;
  if (promotes || entry.signature.args[arg].type == BP_TYPE_SCALAR) return compute;
  const bp_dtype_mask mask = entry.dtypes.accepts[arg];
  for (bp_dtype dtype = 0; dtype < BP_DTYPE_COUNT; ++dtype)
    if (mask == BP_DTYPE_BIT(dtype)) return dtype;
  return BP_DTYPE_NONE;
}

std::unique_ptr<ScalarFunction> ScalarLibrary::make(const Entry& entry, bp_dtype compute, bp_dtype result,
                                                    Diagnostics& diagnostics) {
  auto function = std::make_unique<ScalarFunction>();
  function->entry = &entry;
  function->compute = compute;
  function->result = result;
  function->by_result = dtype_argument(entry) != nullptr;
  function->dtypes = {compute, result};
  function->name = entry.ns + "_" + c_identifier(entry.name()) + "_" + std::string(kDtypeNames[compute]);
  if (function->by_result) function->name += "_" + std::string(kDtypeNames[result]);
  for (size_t i = 0; i < entry.signature.args.size(); ++i) {
    const Arg& arg = entry.signature.args[i];
    if (arg.type == BP_TYPE_DTYPE) continue;
    const bp_dtype dtype = param_dtype(entry, i, compute);
    if (dtype == BP_DTYPE_NONE) {
      diagnostics.error(entry.where, "'" + entry.name() + "' has no scalar: '" + arg.name +
                                         "' is of several dtypes; write scalar: {none: why}");
      return nullptr;
    }
    function->params.push_back({arg.name + "_" + std::to_string(i), dtype});
  }
  const auto compile = [&](const Text& text, const Expr& expr) {
    return ScalarCompiler(*this, *function, diagnostics).compile(text, expr);
  };
  if (!entry.states_scalar) {
    if (!entry.decompose || !entry.decompose->expr || !compile(entry.decompose->text, *entry.decompose->expr))
      return nullptr;
    return function;
  }
  for (const ScalarRule& rule : entry.scalars)
    if (has(rule.dtypes, compute)) return rule.expr && compile(rule.text, *rule.expr) ? std::move(function) : nullptr;
  if (!entry.scalars.empty())
    diagnostics.error(entry.scalars[0].where, "'scalar' says nothing about " + std::string(kDtypeNames[compute]) +
                                                  ", which '" + entry.name() + "' accepts; add its class");
  return nullptr;
}

const ScalarFunction* ScalarLibrary::find(const Entry& entry, bp_dtype compute, bp_dtype result, std::string& why) {
  result = result_dtype(entry, compute, result);
  if (result == BP_DTYPE_NONE || has(kHalves, result)) {
    why = "has a result whose dtype is open";
    return nullptr;
  }
  Known& known = known_[entry.full_name + " " + std::to_string(compute) + " " + std::to_string(result)];
  if (known.open && !known.function)
    why = "has no scalar function of " + std::string(kDtypeNames[compute]) +
          ", or leads back to itself; state its scalar";
  if (known.open) return known.function;
  known.open = true;
  Diagnostics unseen;  // a decomposition need not be over elements
  std::unique_ptr<ScalarFunction> made = make(entry, compute, result, entry.states_scalar ? mistakes_ : unseen);
  if (!made) {
    why = "has no scalar function of " + std::string(kDtypeNames[compute]) + "; state its scalar";
    return nullptr;
  }
  known.function = made.get();
  made_.push_back(std::move(made));
  return known.function;
}

void ScalarLibrary::make_all(const Entry& entry) {
  if (const std::string why = why_not_elementwise(entry); !why.empty()) {
    if (!entry.scalars.empty())
      mistakes_.error(entry.scalars[0].where, "'" + entry.name() + "' " + why + "; remove 'scalar'");
    return;
  }
  const bp_dtype_mask mask = scalar_dtypes(entry);
  for (const ScalarRule& rule : entry.scalars)
    if (!(rule.dtypes & mask))
      mistakes_.error(rule.where, "'" + entry.name() + "' accepts none of these dtypes; remove the rule");
  std::string why;
  for (bp_dtype compute = 0; compute < BP_DTYPE_COUNT; ++compute) {
    if (!has(mask, compute)) continue;
    for (bp_dtype result = 0; result < BP_DTYPE_COUNT; ++result)
      if (has(kScalarDtypes, result) && (dtype_argument(entry) || result == compute)) find(entry, compute, result, why);
  }
}

std::vector<std::unique_ptr<ScalarFunction>> compile_scalars(const std::vector<std::unique_ptr<RegistryFile>>& files,
                                                             const Registry& names, Diagnostics& diagnostics) {
  ScalarLibrary library(names, diagnostics);
  for (const auto& file : files)
    for (const Entry& entry : file->entries)
      if (!entry.damaged && !entry.imported && !entry.composite) library.make_all(entry);
  return library.take();
}

}  // namespace backplane::codegen
