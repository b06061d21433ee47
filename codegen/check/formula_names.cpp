// What names and attributes in a formula mean: arguments, results, cotangents, tangents, literals. See the header.
#include "check/formula_compiler.hpp"

#include <algorithm>
#include <limits>
#include <numbers>

#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

using Kind = Type::Kind;

bool is_transpose(std::string_view member) { return member == "mT" || member == "mH"; }

// The short words give way to arguments of their names; the long ones are there for that.
bool is_cotangent(std::string_view word) { return word == "g" || word == "cotangent"; }
bool is_tangent(std::string_view word) { return word == "t" || word == "tangent"; }
bool is_piece(std::string_view word) { return word == "v" || word == "piece"; }

}  // namespace

// ---- names ----

bool FormulaCompiler::literal_word(const Expr& expr, Value& out) {
  const std::string& word = expr.name;
  if (word == "true" || word == "false")
    out = constant(Kind::kBool, {BP_TAG_BOOL, word == "true", 0, {}});
  else if (word == "none")
    out = {program_.absent(), Type::of(Kind::kNone)};
  else if (word == "inf")
    out = constant(Kind::kNumber, {BP_TAG_FLOAT, 0, std::numeric_limits<double>::infinity(), {}});
  else if (word == "nan")
    out = constant(Kind::kNumber, {BP_TAG_FLOAT, 0, std::numeric_limits<double>::quiet_NaN(), {}});
  else if (word == "pi")
    out = constant(Kind::kNumber, {BP_TAG_FLOAT, 0, std::numbers::pi, {}});
  else if (find_dtype(word) >= 0)
    out = constant(Kind::kDtype, {BP_TAG_DTYPE, find_dtype(word), 0, {}});
  else
    return false;
  return true;
}

Value FormulaCompiler::argument(size_t index) {
  return {program_.add(BP_NODE_ARG, static_cast<int64_t>(index)), type_of(entry_.signature.args[index])};
}

Value FormulaCompiler::name(const Expr& expr) {
  for (auto variable = scope_.variables.rbegin(); variable != scope_.variables.rend(); ++variable) {
    if (variable->name != expr.name) continue;
    variable->used = true;
    return variable->given ? in_caller(*variable->given) : variable->value;
  }
  if (!scope_.definition) {
    if (const auto given = context_.given.find(expr.name); given != context_.given.end()) return given->second;
    if (const int arg = entry_.signature.find_arg(expr.name); arg >= 0) return argument(static_cast<size_t>(arg));
  }
  if (const auto table = entry_.shared->tables.find(expr.name); table != entry_.shared->tables.end())
    return list(*table->second.list);
  Value value;
  if (literal_word(expr, value)) return value;
  if (scope_.definition)
    return fail(expr, "unknown name '" + expr.name + "'; a definition knows its parameters alone, " +
                          listed({scope_.definition->params.begin(), scope_.definition->params.end()}));
  return special(expr);
}

Value FormulaCompiler::special(const Expr& expr) {
  const std::string& word = expr.name;
  const auto& results = entry_.signature.results;
  const bool derivative = (context_.rule == BP_RULE_VJP || context_.rule == BP_RULE_JVP);
  const auto result = [&](uint16_t kind) {
    if (results.size() > 1)
      return fail(expr, "'" + entry_.name() + "' has several results; write " + word + "." + results[0].name);
    Value value{program_.add(kind, 0), Type::of(results[0].is_list ? Kind::kTensorList : Kind::kTensor)};
    value.type.optional = kind == BP_NODE_COTANGENT && entry_.pass_zeros;
    return value;
  };
  if (word == "out" && derivative) return result(BP_NODE_OUT);
  if (is_cotangent(word) && context_.rule == BP_RULE_VJP && !context_.partial) return result(BP_NODE_COTANGENT);
  if (is_piece(word) && context_.rule == BP_RULE_PUT)
    return {program_.add(BP_NODE_COTANGENT, 0), Type::of(Kind::kTensor)};
  if (is_tangent(word) && context_.rule == BP_RULE_JVP && !context_.partial) {
    if (context_.targets.size() != 1)
      return fail(expr, "several tangents are read here; write " + word + ".x for that of x");
    Value value{program_.add(BP_NODE_TANGENT, context_.targets[0]),
                type_of(entry_.signature.args[context_.targets[0]])};
    value.type.optional = false;
    return value;
  }
  const std::string where = context_.partial                     ? "'partial'"
                            : context_.rule == BP_RULE_VJP       ? "'vjp'"
                            : context_.rule == BP_RULE_JVP       ? "'jvp'"
                            : context_.rule == BP_RULE_DECOMPOSE ? "'decompose'"
                            : context_.rule == BP_RULE_BATCH     ? "'batch'"
                            : context_.rule == BP_RULE_PUT       ? "'put'"
                                                                 : "'shape'";
  if (word == "out" || word == "g" || word == "t" || word == "v" || word == "needs")
    return fail(expr, "'" + word + "' has no meaning in " + where +
                          (word == "needs"                               ? "; write needs.x in 'vjp'"
                           : word == "g" && context_.rule == BP_RULE_JVP ? "; write t, the tangent"
                           : word == "t" && context_.rule == BP_RULE_VJP ? "; write g, the cotangent"
                                                                         : "; use the arguments"));
  if (derivative &&
      std::any_of(results.begin(), results.end(), [&](const ResultSpec& one) { return one.name == word; }))
    return fail(expr, "'" + word + "' is a result; write out." + word);
  if (is_bound_later(expr)) return fail(expr, "'" + word + "' is bound further on; put its let before what reads it");
  return fail(expr,
              "unknown name '" + word + "'" + suggestion(word, visible_names()) + "; arguments are " + listed([&] {
                std::vector<std::string_view> names;
                for (const Arg& arg : entry_.signature.args) names.push_back(arg.name);
                return names;
              }()));
}

// By a `let` of the formula, or a `let` of the entry below the one that reads it.
bool FormulaCompiler::is_bound_later(const Expr& name) const {
  std::vector<const Expr*> open = {&whole_};
  while (!open.empty()) {
    const Expr& expr = *open.back();
    open.pop_back();
    if (expr.kind == Expr::Kind::kLet && expr.name == name.name && expr.offset > name.offset) return true;
    for (const ExprPtr& child : expr.children)
      if (child) open.push_back(child.get());
    for (const Keyword& keyword : expr.keywords) open.push_back(keyword.value.get());
  }
  return std::any_of(entry_.lets.begin(), entry_.lets.end(),
                     [&](const Let& let) { return let.name.value == name.name; });
}

std::vector<std::string_view> FormulaCompiler::visible_names() const {
  std::vector<std::string_view> names = {"out", "true", "false", "none", "inf", "nan", "pi"};
  for (const Arg& arg : entry_.signature.args) names.push_back(arg.name);
  for (const Variable& variable : scope_.variables) names.push_back(variable.name);
  return names;
}

// ---- attributes ----

Value FormulaCompiler::attribute(const Expr& expr) {
  Value value;
  if (!scope_.definition && expr.children[0]->kind == Expr::Kind::kName && special_member(expr, value)) return value;
  const Expr& base = *expr.children[0];
  // A view's base keeps its shape when it is replaced by zeros; its data need not be kept.
  if (!scope_.definition && base.kind == Expr::Kind::kName && context_.given.count(base.name) &&
      !is_transpose(expr.name))
    if (const int arg = entry_.signature.find_arg(base.name); arg >= 0)
      if (std::none_of(scope_.variables.begin(), scope_.variables.end(),
                       [&](const Variable& v) { return v.name == base.name; }))
        return member(expr, argument(static_cast<size_t>(arg)));
  return member(expr, compile(base));
}

// `g.NAME`, `out.NAME`, `t.x`, `needs.x`, `b.x`; and the long words
bool FormulaCompiler::special_member(const Expr& expr, Value& out) {
  const std::string& base = expr.children[0]->name;
  for (const Variable& variable : scope_.variables)
    if (variable.name == base) return false;
  if (base != "b" && entry_.signature.find_arg(base) >= 0) return false;
  const bool derivative = context_.rule == BP_RULE_VJP || context_.rule == BP_RULE_JVP;
  const bool several = entry_.signature.results.size() > 1;
  if (several &&
      ((is_cotangent(base) && context_.rule == BP_RULE_VJP && !context_.partial) || (base == "out" && derivative))) {
    out = member_of_results(expr, is_cotangent(base) ? BP_NODE_COTANGENT : BP_NODE_OUT);
    return true;
  }
  uint16_t kind = 0;
  if (is_tangent(base) && context_.rule == BP_RULE_JVP && !context_.partial)
    kind = BP_NODE_TANGENT;
  else if (base == "needs" && context_.rule == BP_RULE_VJP)
    kind = BP_NODE_NEEDS;
  else if (base == "b" && context_.rule == BP_RULE_BATCH)
    kind = BP_NODE_BATCHED;
  const int arg = entry_.signature.find_arg(expr.name);
  if (kind == BP_NODE_TANGENT && arg < 0 && find_dtype(expr.name) < 0 && context_.targets.size() == 1) return false;
  if (kind == 0 || (kind == BP_NODE_BATCHED && arg < 0 && entry_.signature.find_arg("b") >= 0)) return false;
  if (arg < 0 || !entry_.signature.args[static_cast<size_t>(arg)].is_tensor()) {
    out =
        fail(expr, "'" + base + "." + expr.name + "' names no Tensor argument; write " + base + ".x for an argument x");
    return true;
  }
  if (kind == BP_NODE_TANGENT && std::find(context_.targets.begin(), context_.targets.end(),
                                           static_cast<uint32_t>(arg)) == context_.targets.end()) {
    out = fail(expr, "the addend of one argument's tangent reads another's, " + base + "." + expr.name +
                         "; write a rule for \"(x, y)\" together");
    return true;
  }
  out = {program_.add(kind, arg),
         kind == BP_NODE_TANGENT ? type_of(entry_.signature.args[static_cast<size_t>(arg)]) : Type::of(Kind::kBool)};
  out.type.optional = false;
  return true;
}

Value FormulaCompiler::member_of_results(const Expr& expr, uint16_t kind) {
  const int result = entry_.signature.find_result(expr.name);
  if (result < 0) {
    std::vector<std::string_view> names;
    for (const ResultSpec& r : entry_.signature.results) names.push_back(r.name);
    return fail(expr, "'" + expr.name + "' is not a result of '" + entry_.name() + "'" + suggestion(expr.name, names) +
                          "; results are " + listed(names));
  }
  const ResultSpec& spec = entry_.signature.results[static_cast<size_t>(result)];
  if (kind == BP_NODE_COTANGENT && spec.nondiff)
    return fail(expr, "result '" + spec.name + "' is a constant and has no cotangent; use the others");
  Value value{program_.add(kind, result), Type::of(spec.is_list ? Kind::kTensorList : Kind::kTensor)};
  value.type.optional = kind == BP_NODE_COTANGENT && entry_.pass_zeros;
  return value;
}

Value FormulaCompiler::member(const Expr& expr, const Value& given) {
  Value base = given;
  if (base.type.is(Kind::kAny)) return base;
  if (base.type.is(Kind::kTuple)) {
    const int result = base.type.op->signature.find_result(expr.name);
    if (result >= 0)
      return {program_.add(BP_NODE_SELECT, result, {base.node}),
              Type::of(base.type.op->signature.results[static_cast<size_t>(result)].is_list ? Kind::kTensorList
                                                                                            : Kind::kTensor)};
    return fail(expr, "'" + expr.name + "' is not a result of '" + base.type.op->name() + "'; name one of its results");
  }
  if (!base.type.is(Kind::kTensor))
    return fail(expr, describe(base.type) + " has no attribute '" + expr.name +
                          "'; only Tensors have shape, ndim, dtype, device, mT and mH");
  require_there(*expr.children[0], base);
  if (expr.name == "shape") return {program_.add(BP_NODE_SHAPE, 0, {base.node}), Type::of(Kind::kInts)};
  if (expr.name == "ndim") return {program_.add(BP_NODE_NDIM, 0, {base.node}), Type::of(Kind::kInt)};
  if (expr.name == "dtype") return {program_.add(BP_NODE_DTYPE, 0, {base.node}), Type::of(Kind::kDtype)};
  if (expr.name == "device") return {program_.add(BP_NODE_DEVICE, 0, {base.node}), Type::of(Kind::kDevice)};
  if (is_transpose(expr.name)) return transpose(expr, base);
  const std::vector<std::string_view> names = {"shape", "ndim", "dtype", "device", "mT", "mH"};
  return fail(expr, "a Tensor has no attribute '" + expr.name + "'" + suggestion(expr.name, names) + "; there are " +
                        listed(names));
}

// x.mT, and x.mH, which is conj(x).mT.
Value FormulaCompiler::transpose(const Expr& expr, const Value& base) {
  if (expr.name == "mT") return tensor_operator(expr, "mT", {base});
  const Entry* conj = registry_.find("conj", entry_.ns);
  if (!conj) return fail(expr, "mH needs bp::conj, which is not known; import ops.yaml (--import), or call an op");
  return tensor_operator(expr, "mT", {op(expr, *conj, {base})});
}

void FormulaCompiler::require_there(const Expr& at, Value& value) {
  if (!value.type.optional && !value.type.is(Kind::kNone)) return;
  if (present_.count(value.node)) {
    value.type.optional = false;
    return;
  }
  error(at.offset,
        "this value may be none; write it under `... if present(...) else ...`, or default(value, fallback)");
  value = reported();
}

}  // namespace backplane::codegen
