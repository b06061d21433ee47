// Derivatives of one entry: stated vjp and jvp, those that follow from `partial`, `linear` and `put`, and holes.
#include <algorithm>

#include "check/names.hpp"
#include "check/op_compiler.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

bool one_literal(const Expr& expr) {
  return (expr.kind == Expr::Kind::kInt && expr.integer == 1) || (expr.kind == Expr::Kind::kFloat && expr.number == 1);
}

// The dtypes in which the op may compute.
bp_dtype_mask compute_mask(const Entry& entry) {
  bp_dtype_mask mask = entry.dtypes.flags & BP_DTYPE_TO_FLOATING ? kInexact : 0;
  bool any = false;
  for (size_t i = 0; i < entry.dtypes.accepts.size(); ++i) {
    if (!(entry.dtypes.promote >> i & 1)) continue;
    any = true;
    mask |= entry.dtypes.accepts[i];
  }
  return any ? mask : BP_MASK_ANY;
}

}  // namespace

bool is_differentiable_arg(const Entry& entry, size_t index) {
  return entry.signature.args[index].is_tensor() && (entry.dtypes.accepts[index] & kInexact) != 0;
}

bool is_differentiable_result(const Entry& entry, size_t index) {
  if (entry.signature.results[index].nondiff) return false;
  const bp_result_dtype& dtype = entry.dtypes.results[index];
  switch (dtype.kind) {
    case BP_RESULT_DTYPE_FIXED:
      return (BP_DTYPE_BIT(dtype.param) & kInexact) != 0;
    case BP_RESULT_DTYPE_OF_ARG:
      return (entry.dtypes.accepts[dtype.param] & kInexact) != 0;
    case BP_RESULT_DTYPE_FROM_ARG:
      return true;
    default:
      return (compute_mask(entry) & kInexact) != 0;
  }
}

std::vector<uint32_t> OpCompiler::differentiable_args() const {
  std::vector<uint32_t> args;
  for (size_t i = 0; i < entry_.signature.args.size(); ++i)
    if (is_differentiable_arg(entry_, i)) args.push_back(static_cast<uint32_t>(i));
  return args;
}

bool OpCompiler::reads(const CompiledFormula& formula, uint16_t kind) const {
  const std::vector<bool> used = op_.program.reachable(formula.roots);
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i] && op_.program.nodes()[i].kind == kind) return true;
  return false;
}

uint32_t OpCompiler::fit(uint32_t node, uint32_t target) {
  if (!registry_.can_fit()) {
    if (!fit_refused_)
      error(entry_.where,
            "the cotangents of '" + entry_.name() +
                "' are fitted by bp::sum_to, bp::cast and bp::real, which are not known; import ops.yaml (--import)");
    fit_refused_ = true;
    return node;
  }
  op_.uses_fit = true;
  return op_.program.add(BP_NODE_FIT, target, {node});
}

void OpCompiler::compile_partial(const Rule& rule) {
  if (rule.targets.size() != 1) {
    error(rule.where, "'partial' names one argument per formula; split the group");
    return;
  }
  const uint32_t target = rule.targets[0];
  if (rule.kind == Rule::Kind::kRefused) {
    for (const uint16_t kind : {BP_RULE_VJP, BP_RULE_JVP}) {
      CompiledFormula refused = formula(kind, rule);
      refused.flags = BP_FORMULA_REFUSED;
      op_.formulas.push_back(std::move(refused));
    }
    return;
  }
  if (entry_.signature.results.size() != 1 || !(op_.flags & BP_OP_ELEMENTWISE)) {
    error(rule.where, "'partial' is for elementwise ops with one result (shape: broadcast(...)); write vjp and jvp");
    return;
  }
  FormulaContext context;
  context.rule = BP_RULE_VJP;
  context.partial = true;
  context.targets = rule.targets;
  FormulaCompiler expression(registry_, entry_, op_.program, diagnostics_, rule.text, *rule.expr, std::move(context));
  const Value partial = expression.compile(*rule.expr);
  if (!partial.type.is(Type::Kind::kTensor) && !partial.type.is_number() && !partial.type.is(Type::Kind::kAny))
    expression.error(rule.expr->offset,
                     "the partial derivative is " + describe(partial.type) + "; it must be a Tensor or a number");
  const bool one = one_literal(*rule.expr);
  const Entry* multiply = registry_.find_operator("*", 2, entry_.ns);
  if (!one && !multiply)
    error(rule.where,
          "'partial' needs an op with `operator: '*'`, and none is known; import ops.yaml (--import), or write vjp and "
          "jvp");
  if (expression.failed() || (!one && !multiply)) return;
  const auto times = [&](uint32_t a, uint32_t b) { return one ? a : op_.program.call(multiply->full_name, {a, b}); };

  CompiledFormula vjp = formula(BP_RULE_VJP, rule);
  vjp.flags = BP_FORMULA_DERIVED;
  const uint32_t cotangent = op_.program.add(BP_NODE_COTANGENT, 0);
  vjp.roots.push_back(fit(times(cotangent, one ? 0 : expression.conjugate(partial).node), target));
  op_.formulas.push_back(std::move(vjp));
  CompiledFormula jvp = formula(BP_RULE_JVP, rule);
  jvp.flags = BP_FORMULA_DERIVED;
  jvp.roots.push_back(times(op_.program.add(BP_NODE_TANGENT, target), partial.node));
  op_.formulas.push_back(std::move(jvp));
}

void OpCompiler::compile_vjp(const Rule& rule) {
  CompiledFormula result = formula(BP_RULE_VJP, rule);
  if (rule.kind == Rule::Kind::kZero || rule.kind == Rule::Kind::kRefused) {
    result.flags = rule.kind == Rule::Kind::kZero ? BP_FORMULA_ZERO : BP_FORMULA_REFUSED;
    std::erase_if(result.targets, [&](uint32_t t) { return !is_differentiable_arg(entry_, t); });
    if (!result.targets.empty()) op_.formulas.push_back(std::move(result));
    return;
  }
  for (const uint32_t target : rule.targets)
    if (!is_differentiable_arg(entry_, target))
      error(rule.where, "argument '" + entry_.signature.args[target].name +
                            "' has no inexact dtype, so it has no derivative; remove it from 'vjp'");
  FormulaCompiler expression = compiler(rule.text, *rule.expr, BP_RULE_VJP, rule.targets);
  const std::vector<Value> values = expression.compile_several(*rule.expr, rule.targets.size(), "arguments");
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t target = rule.targets[i];
    const bool list = entry_.signature.args[target].has(BP_ARG_LIST);
    result.roots.push_back(
        fit(root(expression, *rule.expr, values[i], list, entry_.pass_zeros || rule.targets.size() > 1), target));
  }
  if (entry_.pass_zeros) result.flags |= BP_FORMULA_PASS_ZEROS;
  if (!expression.failed() && !reads(result, BP_NODE_COTANGENT))
    error(rule.where, entry_.signature.find_arg("g") < 0
                          ? "the vjp never uses the cotangent 'g'; it must be linear in it, or say zero"
                          : "the vjp never uses the cotangent; here 'g' is the argument, so write cotangent, or zero");
  op_.formulas.push_back(std::move(result));
}

void OpCompiler::compile_jvp(const Rule& rule) {
  if (rule.kind == Rule::Kind::kLinear) return derive_linear_jvp(rule.where);
  CompiledFormula result = formula(BP_RULE_JVP, rule);
  if (rule.kind == Rule::Kind::kZero || rule.kind == Rule::Kind::kRefused) {
    result.flags = rule.kind == Rule::Kind::kZero ? BP_FORMULA_ZERO : BP_FORMULA_REFUSED;
    std::erase_if(result.targets, [&](uint32_t t) { return !is_differentiable_arg(entry_, t); });
    if (!result.targets.empty()) op_.formulas.push_back(std::move(result));
    return;
  }
  const auto& results = entry_.signature.results;
  bool failed = false;
  const auto add = [&](FormulaCompiler& expression, const Expr& expr, size_t index, const Value& value) {
    result.roots.push_back(root(expression, expr, value, results[index].is_list, results.size() > 1));
    failed = failed || expression.failed();
  };
  if (!rule.per_result.empty()) {
    for (size_t i = 0; i < rule.per_result.size(); ++i) {
      FormulaCompiler expression =
          compiler(rule.per_result[i].first, *rule.per_result[i].second, BP_RULE_JVP, rule.targets);
      add(expression, *rule.per_result[i].second, i, expression.compile(*rule.per_result[i].second));
      result.text += (i ? "; " : "") + whole_text(entry_, rule.per_result[i].first, rule.per_result[i].second.get());
    }
  } else {
    FormulaCompiler expression = compiler(rule.text, *rule.expr, BP_RULE_JVP, rule.targets);
    const std::vector<Value> values = expression.compile_several(*rule.expr, results.size(), "results");
    for (size_t i = 0; i < values.size(); ++i) add(expression, *rule.expr, i, values[i]);
  }
  if (!failed && !reads(result, BP_NODE_TANGENT))
    error(rule.where, "the jvp never uses the tangent 't'; it must be linear in it, or say zero");
  op_.formulas.push_back(std::move(result));
}

// The op itself on the tangents: one formula for all of them, since it is jointly linear.
void OpCompiler::derive_linear_jvp(const Location& where) {
  CompiledFormula result;
  result.rule = BP_RULE_JVP;
  result.flags = BP_FORMULA_DERIVED;
  result.targets = differentiable_args();
  result.line = where.line;
  result.text = "linear";
  if (result.targets.empty()) return;
  std::vector<uint32_t> inputs;
  for (size_t i = 0; i < entry_.signature.args.size(); ++i)
    inputs.push_back(
        op_.program.add(is_differentiable_arg(entry_, i) ? BP_NODE_TANGENT : BP_NODE_ARG, static_cast<int64_t>(i)));
  const uint32_t call = op_.program.call(entry_.full_name, std::move(inputs));
  const size_t n = entry_.signature.results.size();
  for (size_t i = 0; i < n; ++i) {
    if (n == 1)
      result.roots.push_back(call);
    else if (is_differentiable_result(entry_, i))
      result.roots.push_back(op_.program.add(BP_NODE_SELECT, static_cast<int64_t>(i), {call}));
    else
      result.roots.push_back(op_.program.absent());
  }
  op_.flags |= BP_OP_LINEAR;
  op_.formulas.push_back(std::move(result));
}

// A view's cotangent is written into zeros of its base's shape. They read no element of the base, which a write through
// the view may change before the derivative is computed.
void OpCompiler::derive_view_vjp() {
  const Rule& put = *entry_.put;
  if (!registry_.find_full("bp::full")) {
    error(put.where, "the derivative of view '" + entry_.name() +
                         "' needs bp::full, which is not known; import ops.yaml (--import), or write 'vjp'");
    return;
  }
  const std::string& base = entry_.signature.args[entry_.alias].name;
  FormulaContext context;
  context.rule = BP_RULE_PUT;
  context.targets = {entry_.alias};
  Type tensor;
  tensor.kind = Type::Kind::kTensor;
  Diagnostics reported_already;
  Text zeros = put.text;
  zeros.value = "bp::full(" + base + ".shape, 0, dtype=" + base + ".dtype, device=" + base + ".device)";
  FormulaContext of_base;
  of_base.rule = BP_RULE_PUT;
  of_base.targets = {entry_.alias};
  const ExprPtr filled = parse_formula(zeros, reported_already);
  FormulaCompiler filling(registry_, entry_, op_.program, reported_already, zeros, *filled, std::move(of_base));
  context.given[base] = {filling.compile(*filled).node, tensor};
  const Value piece{op_.program.add(BP_NODE_COTANGENT, 0), tensor};
  for (const char* word : {"v", "piece"})
    if (entry_.signature.find_arg(word) < 0) context.given[word] = piece;
  FormulaCompiler expression(registry_, entry_, op_.program, reported_already, put.text, *put.expr, std::move(context));
  CompiledFormula result = formula(BP_RULE_VJP, put);
  result.targets = {entry_.alias};
  result.flags = BP_FORMULA_DERIVED;
  result.roots.push_back(fit(expression.compile(*put.expr).node, entry_.alias));
  op_.formulas.push_back(std::move(result));
}

void OpCompiler::compile_derivatives() {
  if (entry_.is_higher_order()) return;
  if (entry_.composite) {
    for (const auto* rules : {&entry_.partial, &entry_.vjp, &entry_.jvp})
      for (const Rule& rule : *rules)
        error(rule.where,
              "a composite op differentiates through its decomposition; remove this rule, or 'kind: composite'");
    return;
  }
  std::vector<bool> by_partial(entry_.signature.args.size(), false);
  for (const Rule& rule : entry_.partial) {
    for (const uint32_t target : rule.targets) by_partial[target] = true;
    if (rule.kind != Rule::Kind::kDamaged) compile_partial(rule);
  }
  for (const auto* rules : {&entry_.vjp, &entry_.jvp}) {
    for (const Rule& rule : *rules) {
      const auto twice =
          std::find_if(rule.targets.begin(), rule.targets.end(), [&](uint32_t t) { return by_partial[t]; });
      if (rule.kind != Rule::Kind::kDamaged && twice != rule.targets.end()) {
        const std::string key = rules == &entry_.vjp ? "vjp" : "jvp";
        error(rule.where, "argument '" + entry_.signature.args[*twice].name + "' has rules in 'partial' and in '" +
                              key + "', which follows from 'partial'; keep one");
        continue;
      }
      if (rule.kind == Rule::Kind::kDecompose) {
        if (!entry_.decompose) error(rule.where, "the derivative goes through 'decompose', which is missing; write it");
      } else if (rule.kind != Rule::Kind::kDamaged) {
        rules == &entry_.vjp ? compile_vjp(rule) : compile_jvp(rule);
      }
    }
  }
  const bool view = entry_.view || entry_.maybe_view;
  if (view && !entry_.states_vjp && entry_.put && entry_.put->kind == Rule::Kind::kFormula) derive_view_vjp();
  if (view && !entry_.states_jvp && entry_.partial.empty()) derive_linear_jvp(entry_.where);
  check_holes();
}

void OpCompiler::check_holes() {
  const auto& results = entry_.signature.results;
  bool differentiable = false;
  for (size_t i = 0; i < results.size(); ++i) differentiable = differentiable || is_differentiable_result(entry_, i);
  if (!differentiable) return refuse_unreachable_rules();
  const auto through_decomposition = [](const std::vector<Rule>& rules) {
    return std::any_of(rules.begin(), rules.end(), [](const Rule& r) { return r.kind == Rule::Kind::kDecompose; });
  };
  for (const uint32_t arg : differentiable_args()) {
    const std::string& name = entry_.signature.args[arg].name;
    const auto stated = [&](const std::vector<Rule>& rules) {
      return std::any_of(rules.begin(), rules.end(),
                         [&](const Rule& r) { return std::count(r.targets.begin(), r.targets.end(), arg); });
    };
    const bool elementwise = entry_.shapes.size() == 1 && (op_.flags & BP_OP_ELEMENTWISE);
    const bool lacks_vjp = !op_.find(BP_RULE_VJP, arg) && !through_decomposition(entry_.vjp) && !stated(entry_.vjp) &&
                           !stated(entry_.partial) && !fit_refused_;
    if (lacks_vjp)
      error(entry_.where,
            "'" + entry_.name() + "' has no vjp for '" + name + "'; write " +
                (elementwise ? "partial: {" + name + ": FORMULA} for an elementwise op, " : std::string()) + "vjp: {" +
                name + ": FORMULA}, vjp: decompose where `decompose` says it all, zero, or {none: REASON}");
    if (lacks_vjp && elementwise) continue;  // `partial` gives both
    if (!op_.find(BP_RULE_JVP, arg) && !through_decomposition(entry_.jvp) && !stated(entry_.jvp) &&
        !stated(entry_.partial))
      error(entry_.where, "'" + entry_.name() + "' has no jvp for '" + name + "'; write jvp: linear, jvp: {" + name +
                              ": FORMULA}, jvp: like vjp, jvp: decompose, zero, or {none: REASON}");
  }
}

// No gradient passes through integers and bools: a formula for one would never run, and its author would find zeros.
void OpCompiler::refuse_unreachable_rules() {
  for (const auto* rules : {&entry_.partial, &entry_.vjp, &entry_.jvp})
    for (const Rule& rule : *rules) {
      const bool runs =
          rule.kind == Rule::Kind::kFormula || rule.kind == Rule::Kind::kLinear || rule.kind == Rule::Kind::kDecompose;
      if (runs)
        error(rule.where,
              "no gradient passes through the results of '" + entry_.name() +
                  "', which are not floating or complex: this rule would never run, and the gradient "
                  "be zero. Fix: return a floating dtype, and let the gradient pass straight through, as in "
                  "`decompose: x + stop_gradient(round(x) - x)`; or state zero");
    }
}

}  // namespace backplane::codegen
