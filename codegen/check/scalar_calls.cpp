// Calls in a formula over elements: builtins, definitions, intrinsics and other entries; see scalar_compiler.hpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "check/scalar_compiler.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

struct DtypeQuestion {
  std::string_view word;
  bp_dtype_mask mask;
};
constexpr DtypeQuestion kQuestions[] = {{"is_floating", BP_MASK_FLOATING},
                                        {"is_complex", BP_MASK_COMPLEX},
                                        {"is_integer", BP_MASK_INTEGER},
                                        {"is_bool", BP_MASK_BOOL}};

struct NumberFunction {
  std::string_view word;
  double (*compute)(double);
};
constexpr NumberFunction kNumberFunctions[] = {{"math_sqrt", [](double x) { return std::sqrt(x); }},
                                               {"math_log", [](double x) { return std::log(x); }},
                                               {"math_exp", [](double x) { return std::exp(x); }},
                                               {"float", [](double x) { return x; }}};

std::vector<std::string_view> builtin_words() {
  return {"where",     "real",       "imag",      "complex",   "cast",     "intrinsic",
          "ones_like", "zeros_like", "finfo_eps", "finfo_max", "finfo_min"};
}

}  // namespace

ScalarCompiler::Maybe ScalarCompiler::call(const Expr& expr) {
  bool known = false;
  Maybe value = builtin(expr, known);
  if (known) return value;
  if (const Definition* shared = function_.entry->shared->find_definition(expr.name)) return definition(*shared, expr);
  const Entry* callee = library_.names().find(expr.name, function_.entry->ns);
  if (!callee || callee->damaged) {
    std::vector<std::string_view> names = library_.names().names_for(function_.entry->ns), words = builtin_words();
    names.insert(names.end(), words.begin(), words.end());
    return error(expr, "unknown op '" + expr.name + "'" + suggestion(expr.name, names));
  }
  std::vector<Maybe> args(callee->signature.args.size());
  if (expr.children.size() > args.size())
    return error(expr, "'" + expr.name + "' takes " + std::to_string(args.size()) + " arguments, found " +
                           std::to_string(expr.children.size()) + "; remove what is too much");
  for (size_t i = 0; i < expr.children.size(); ++i)
    if (!(args[i] = lower(*expr.children[i]))) return std::nullopt;
  for (const Keyword& keyword : expr.keywords) {
    const int at = callee->signature.find_arg(keyword.name);
    if (at < 0 || args[static_cast<size_t>(at)])
      return error(expr, "'" + expr.name + "' has no argument '" + keyword.name + "' that is free; see its signature");
    if (!(args[static_cast<size_t>(at)] = lower(*keyword.value))) return std::nullopt;
  }
  return entry_call(expr, *callee, std::move(args));
}

bool ScalarCompiler::lower_all(const Expr& expr, std::vector<Value>& out) {
  for (const ExprPtr& child : expr.children) {
    const Maybe value = lower(*child);
    if (!value) return false;
    out.push_back(*value);
  }
  return true;
}

// The words that a formula over elements has beside the ops; `known` says whether it is one.
ScalarCompiler::Maybe ScalarCompiler::builtin(const Expr& expr, bool& known) {
  const std::string& word = expr.name;
  const std::vector<std::string_view> words = builtin_words();
  const auto* question = std::find_if(std::begin(kQuestions), std::end(kQuestions),
                                      [&](const DtypeQuestion& q) { return q.word == word; });
  const auto* function = std::find_if(std::begin(kNumberFunctions), std::end(kNumberFunctions),
                                      [&](const NumberFunction& f) { return f.word == word; });
  known = question != std::end(kQuestions) || function != std::end(kNumberFunctions) ||
          std::count(words.begin(), words.end(), word);
  if (!known) return std::nullopt;
  std::vector<Value> args;
  if (!lower_all(expr, args)) return std::nullopt;
  if (word == "intrinsic") return intrinsic(expr, std::move(args));
  const size_t wanted = word == "where" ? 3 : word == "complex" || word == "cast" ? 2 : 1;
  if (args.size() != wanted || !expr.keywords.empty())
    return error(expr, "'" + word + "' takes " + std::to_string(wanted) + " values by position, found " +
                           std::to_string(args.size() + expr.keywords.size()));
  if (word == "where") return choose(expr, args[0], args[1], args[2]);
  if (word == "complex") return pair(expr, args[0], args[1]);
  if (word == "cast") return cast(expr, args[0], args[1]);
  if (word == "real" || word == "imag") return part(expr, args[0]);
  if (function != std::end(kNumberFunctions)) {
    if (!args[0].is_number()) return error(expr, "'" + word + "' is of a number, found " + described(args[0]));
    return number(function->compute(args[0].as_double()));
  }
  if (word == "ones_like" || word == "zeros_like") {
    if (!args[0].is_node()) return error(expr, "'" + word + "' is of an element, found " + described(args[0]));
    return adopt(expr, number(int64_t{word == "ones_like"}), dtype_of(args[0]));
  }
  if (args[0].kind != Value::Kind::kDtype) return error(expr, "'" + word + "' is of a dtype, such as x.dtype");
  const auto dtype = static_cast<bp_dtype>(args[0].integer);
  return question != std::end(kQuestions) ? truth(has(question->mask, dtype)) : of_dtype(expr, args[0]);
}

// finfo_eps, finfo_max, finfo_min.
ScalarCompiler::Maybe ScalarCompiler::of_dtype(const Expr& expr, const Value& dtype) {
  const bp_dtype part = part_of(static_cast<bp_dtype>(dtype.integer));
  if (part != BP_FLOAT32 && part != BP_FLOAT64)
    return error(expr, "'" + expr.name + "' is of float32 and float64 where an element is computed");
  using Single = std::numeric_limits<float>;
  using Double = std::numeric_limits<double>;
  const bool single = part == BP_FLOAT32;
  if (expr.name == "finfo_eps") return number(single ? double{Single::epsilon()} : Double::epsilon());
  const double most = single ? double{Single::max()} : Double::max();
  return number(expr.name == "finfo_max" ? most : -most);
}

// A real number is its own real part.
ScalarCompiler::Maybe ScalarCompiler::part(const Expr& expr, Value value) {
  const bool real = expr.name == "real";
  if (value.is_number()) return real ? value : number(int64_t{0});
  if (!value.is_node()) return error(expr, "'" + expr.name + "' is of a number, found " + described(value));
  const bp_dtype dtype = dtype_of(value);
  if (!has(BP_MASK_COMPLEX, dtype)) return real ? Maybe(value) : adopt(expr, number(int64_t{0}), dtype);
  value = named(value, "z");
  return add({ScalarNode::Kind::kPart, part_of(dtype), real ? "re" : "im", 0, 0, {value.node}});
}

ScalarCompiler::Maybe ScalarCompiler::pair(const Expr& expr, Value re, Value im) {
  if (!unify(expr, {&re, &im})) return std::nullopt;
  const bp_dtype dtype = complex_of(dtype_of(re));
  if (dtype == BP_DTYPE_NONE)
    return error(expr, "the parts of a complex number are float32 or float64, found " + described(re));
  return add({ScalarNode::Kind::kPair, dtype, "", 0, 0, {re.node, im.node}});
}

ScalarCompiler::Maybe ScalarCompiler::cast(const Expr& expr, const Value& value, const Value& dtype) {
  if (dtype.kind != Value::Kind::kDtype) return error(expr, "'cast' takes a value and a dtype, such as float32");
  const auto to = static_cast<bp_dtype>(dtype.integer);
  if (has(kHalves, to)) return error(expr, "a half float is stored, not computed with; cast to float32");
  if (!value.is_node()) return adopt(expr, value, to);
  if (dtype_of(value) == to) return value;
  const Value source = named(value, "source");
  return add({ScalarNode::Kind::kConvert, to, "", 0, 0, {source.node}});
}

ScalarCompiler::Maybe ScalarCompiler::intrinsic(const Expr& expr, std::vector<Value> args) {
  std::vector<Value*> all;
  for (Value& arg : args) all.push_back(&arg);
  if (args.empty() || !expr.keywords.empty()) return error(expr, "'intrinsic' takes the values of the op by position");
  if (!unify(expr, all)) return std::nullopt;
  const bp_dtype dtype = dtype_of(args[0]);
  const Intrinsic* found = find_intrinsic(function_.entry->name(), dtype);
  if (!found)
    return error(expr, "no dialect has an intrinsic for '" + function_.entry->name() + "' of " + described(args[0]) +
                           "; of that dtype there are " + listed(intrinsic_names(dtype)) + ": write a formula");
  if (found->operands != args.size())
    return error(expr, "the intrinsic for '" + function_.entry->name() + "' takes " + std::to_string(found->operands) +
                           " values, found " + std::to_string(args.size()));
  ScalarNode node{ScalarNode::Kind::kIntrinsic, dtype, std::string(found->op), 0, 0, {}};
  for (const Value& arg : args) node.children.push_back(arg.node);
  return add(std::move(node));
}

ScalarCompiler::Maybe ScalarCompiler::definition(const Definition& definition, const Expr& expr) {
  std::vector<Value> args;
  if (!definition.expr || !lower_all(expr, args)) return std::nullopt;
  if (args.size() != definition.params.size())
    return error(expr, "'" + definition.word + "' takes " + std::to_string(definition.params.size()) +
                           " values, found " + std::to_string(args.size()));
  if (std::find(running_.begin(), running_.end(), &definition) != running_.end())
    return error(expr, "the definition of '" + definition.word + "' leads back to itself");
  running_.push_back(&definition);
  Scope inner;
  for (size_t i = 0; i < args.size(); ++i)
    inner.emplace_back(definition.params[i], named(args[i], definition.params[i]));
  std::swap(scope_, inner);
  const Text* outer = std::exchange(text_, &definition.text);
  Maybe value = lower(*definition.expr);
  text_ = outer;
  std::swap(scope_, inner);
  running_.pop_back();
  return value;
}

ScalarCompiler::Maybe ScalarCompiler::entry_call(const Expr& expr, const Entry& callee, std::vector<Maybe> args) {
  if (const std::string why = why_not_elementwise(callee); !why.empty())
    return error(expr, "'" + callee.name() + "' " + why + ", so a scalar formula cannot call it");
  const Signature& signature = callee.signature;
  std::vector<Value*> promoted;
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg& arg = signature.args[i];
    if (!args[i] && arg.has(BP_ARG_HAS_DEFAULT) && arg.default_value.kind == Literal::Kind::kInt)
      args[i] = number(arg.default_value.integer);
    else if (!args[i] && arg.has(BP_ARG_HAS_DEFAULT) && arg.default_value.kind == Literal::Kind::kFloat)
      args[i] = number(arg.default_value.number);
    else if (!args[i])
      return error(expr, "'" + callee.name() + "' lacks its argument '" + arg.name + "'; give a value");
    if (callee.dtypes.promote >> i & 1 && arg.is_tensor()) promoted.push_back(&*args[i]);
  }
  if (!unify(expr, promoted)) return std::nullopt;
  const bp_dtype compute = dtype_of(*promoted[0]);
  if (!has(scalar_dtypes(callee), compute))
    return error(expr,
                 "'" + callee.name() + "' does not compute in " + described(*promoted[0]) + "; cast what it is given");
  std::string why;
  const ScalarFunction* function = library_.find(callee, compute, BP_DTYPE_NONE, why);
  if (!function) return error(expr, "'" + callee.name() + "' " + why);
  ScalarNode node{ScalarNode::Kind::kCall, function->result, function->name, 0, 0, {}};
  for (size_t i = 0; i < args.size(); ++i) {
    const Maybe adopted = adopt(expr, *args[i], param_dtype(callee, i, compute));
    if (!adopted) return std::nullopt;
    node.children.push_back(adopted->node);
  }
  function_.dtypes.insert(function->dtypes.begin(), function->dtypes.end());
  function_.called_spaces.insert(callee.ns);
  return add(std::move(node));
}

}  // namespace backplane::codegen
