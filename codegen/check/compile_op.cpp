// Flags, decompositions and put rules of one entry. See op_compiler.hpp.
#include <algorithm>

#include "check/names.hpp"
#include "check/op_compiler.hpp"

namespace backplane::codegen {
namespace {
constexpr uint32_t kMaxNesting = 8;  // the core's limit (formula_plan.cpp), reported here with the place
}

const CompiledFormula* CompiledOp::find(uint16_t rule) const {
  for (const CompiledFormula& formula : formulas)
    if (formula.rule == rule) return &formula;
  return nullptr;
}

const CompiledFormula* CompiledOp::find(uint16_t rule, uint32_t target) const {
  for (const CompiledFormula& formula : formulas)
    if (formula.rule == rule && std::count(formula.targets.begin(), formula.targets.end(), target)) return &formula;
  return nullptr;
}

OpCompiler::OpCompiler(const Registry& registry, const Entry& entry, Diagnostics& diagnostics)
    : registry_(registry), entry_(entry), diagnostics_(diagnostics) {
  op_.entry = &entry;
}

CompiledOp OpCompiler::compile() {
  compile_shapes();
  compile_flags();
  check_region();
  compile_decompose();
  compile_put();
  compile_batch();
  compile_derivatives();
  check_samples();
  derive_samples();
  widen_formulas();
  prune();
  return std::move(op_);
}

void OpCompiler::prune() {
  std::vector<uint32_t> roots;
  for (const CompiledFormula& f : op_.formulas) roots.insert(roots.end(), f.roots.begin(), f.roots.end());
  const std::vector<uint32_t> renumbered = op_.program.prune(roots);
  for (CompiledFormula& f : op_.formulas)
    for (uint32_t& node : f.roots) node = renumbered[node];
  // Native formulas reach the ops of FIT through the names, like any other op.
  if (op_.uses_fit)
    for (const char* name : kFitNames) op_.program.append_name(name);
  if (op_.program.slot_count() > 63)
    error(entry_.where,
          "the formulas of '" + entry_.name() + "' hold more than 63 variables of map and fold; split the op");
  check_nesting();
}

void OpCompiler::check_nesting() {
  const std::vector<uint32_t> depth = op_.program.nesting();
  for (const CompiledFormula& f : op_.formulas) {
    uint32_t deepest = 0;
    for (const uint32_t root : f.roots) deepest = std::max(deepest, depth[root]);
    if (deepest <= kMaxNesting) continue;
    Location where = entry_.where;
    if (f.line > 0) where = {where.file, f.line, 1};
    error(where, "map and fold lie " + std::to_string(deepest) +
                     " deep within each other here, counting the lists that they read; expected at most " +
                     std::to_string(kMaxNesting) + ". Fix: compute a list in the body that reads it, or split the op");
  }
}

FormulaCompiler OpCompiler::compiler(const Text& text, const Expr& expr, uint16_t rule, std::vector<uint32_t> targets) {
  FormulaContext context;
  context.rule = rule;
  context.targets = std::move(targets);
  return {registry_, entry_, op_.program, diagnostics_, text, expr, std::move(context)};
}

CompiledFormula OpCompiler::formula(uint16_t rule, const Rule& stated) const {
  CompiledFormula result;
  result.rule = rule;
  result.targets = stated.targets;
  result.line = stated.where.line;
  result.text = whole_text(entry_, stated.text, stated.expr.get());
  return result;
}

uint32_t OpCompiler::root(FormulaCompiler& compiler, const Expr& expr, const Value& value, bool list,
                          bool may_be_none) {
  using Kind = Type::Kind;
  if (value.type.is(Kind::kAny)) return value.node;
  const std::string wanted = list ? "a list of Tensors" : "a Tensor";
  if (value.type.is(Kind::kNone) || value.type.optional) {
    if (!may_be_none) compiler.error(expr.offset, "the formula may give none; it must give " + wanted);
  } else if (value.type.is_number()) {
    compiler.error(expr.offset, "the formula gives a number; it must give " + wanted + ", so call an op");
  } else if (!value.type.is(list ? Kind::kTensorList : Kind::kTensor)) {
    compiler.error(expr.offset, "the formula gives " + describe(value.type) + "; it must give " + wanted);
  }
  return value.node;
}

// ---- flags ----

void OpCompiler::compile_flags() {
  const auto& args = entry_.signature.args;
  const auto tensors = std::count_if(args.begin(), args.end(), [](const Arg& a) { return a.is_tensor(); });
  const bool lists =
      std::any_of(args.begin(), args.end(), [](const Arg& a) { return a.is_tensor() && a.has(BP_ARG_LIST); });
  const bool generator =
      std::any_of(args.begin(), args.end(), [](const Arg& a) { return a.type == BP_TYPE_GENERATOR; });
  const auto all_shapes = [&](std::string_view word) {
    return !op_.shapes.empty() &&
           std::all_of(op_.shapes.begin(), op_.shapes.end(), [&](const auto& s) { return s.name == word; });
  };
  uint64_t& flags = op_.flags;
  const auto set = [&](bool condition, uint64_t flag) {
    if (condition) flags |= flag;
  };
  set(entry_.view, BP_OP_VIEW);
  set(entry_.maybe_view, BP_OP_MAYBE_VIEW);
  set(entry_.inplace, BP_OP_INPLACE);
  set(entry_.out_variant, BP_OP_OUT);
  // Every tensor takes part in the broadcast, else the loop would read it at the wrong places.
  set(all_shapes("broadcast") && !lists && tensors == static_cast<long>(op_.shapes[0].args.size()), BP_OP_ELEMENTWISE);
  set(all_shapes("reduce") && !lists && tensors == 1, BP_OP_REDUCTION);
  set(generator, BP_OP_RANDOM);
  set(tensors == 0, BP_OP_CREATION);
  set(entry_.host, BP_OP_HOST);
  set(entry_.moves, BP_OP_MOVES);
  set(std::any_of(op_.shapes.begin(), op_.shapes.end(), [](const auto& s) { return s.name == "dynamic"; }),
      BP_OP_DYNAMIC);
  set(!entry_.family.empty(), BP_OP_PRIMITIVE);
  set(entry_.composite, BP_OP_COMPOSITE);
  set(entry_.is_higher_order(), BP_OP_HIGHER_ORDER);
  if (entry_.is_higher_order()) check_higher_order();

  if (entry_.random != generator)
    error(entry_.where, generator
                            ? "'" + entry_.name() + "' takes a Generator but does not say so; write random: true"
                            : "'" + entry_.name() + "' is random but takes no Generator; add a Generator argument");
  if (entry_.inplace && entry_.signature.results.size() == 1 &&
      (args.empty() || !args[0].is_tensor() || args[0].has(BP_ARG_LIST)))
    error(entry_.where, "'" + entry_.name() + "' cannot have an in-place variant; its first argument must be a Tensor");
  if (entry_.inplace && entry_.signature.results.size() > 1 && !entry_.signature.changes)
    error(entry_.where, "'" + entry_.name() +
                            "' cannot have an in-place variant, as it has several results; mark the arguments that it "
                            "changes: " +
                            entry_.name() + "_(Tensor(mut) x, ...)");
  if ((entry_.view || entry_.maybe_view) && op_.shapes.size() == 1 && op_.shapes[0].name != "damaged" &&
      op_.shapes[0].name.substr(0, 5) != "view.")
    error(entry_.where, "'" + entry_.name() + "' is a view; its shape must be one of the view.* words");
  if (entry_.composite && !entry_.family.empty())
    error(entry_.where,
          "'" + entry_.name() + "' is both composite and primitive; a composite has no kernel, keep one of the two");
}

// Everything but the signature comes with the function.
void OpCompiler::check_higher_order() {
  const auto& args = entry_.signature.args;
  const auto is_graph = [](const Arg& a) { return a.type == BP_TYPE_GRAPH; };
  const auto rest = std::find_if_not(args.begin(), args.end(), is_graph);
  const bool fits = rest != args.begin() && std::none_of(rest, args.end(), is_graph) &&
                    entry_.signature.results.size() == 1 && entry_.signature.results[0].is_list;
  if (!fits)
    error(entry_.where, "'" + entry_.name() +
                            "' takes a Graph, so its signature must begin with its Graphs and return one list, as in "
                            "name(Graph function, Tensor[] args) -> Tensor[]");
  if (!(op_.flags & BP_OP_DYNAMIC))
    error(entry_.where, "'" + entry_.name() + "' takes a Graph, which makes the results; write shape: dynamic");
  if (entry_.states_vjp || entry_.states_jvp || entry_.batch || entry_.decompose || !entry_.partial.empty())
    error(entry_.where, "'" + entry_.name() +
                            "' takes a Graph, which brings its rules; remove vjp, jvp, partial, batch and decompose");
}

// ---- decomposition, put ----

void OpCompiler::compile_decompose() {
  if (!entry_.decompose) {
    if (entry_.family.empty() && !entry_.is_higher_order() && !entry_.view && !entry_.maybe_view && !entry_.host)
      error(entry_.where,
            "'" + entry_.name() + "' has no 'decompose'; write one, or say primitive: FAMILY, alias or host: true");
    return;
  }
  const Rule& rule = *entry_.decompose;
  if (rule.kind == Rule::Kind::kDamaged) return;
  CompiledFormula result = formula(BP_RULE_DECOMPOSE, rule);
  FormulaCompiler expression = compiler(rule.text, *rule.expr, BP_RULE_DECOMPOSE);
  const auto& results = entry_.signature.results;
  const std::vector<Value> values = expression.compile_several(*rule.expr, results.size(), "results");
  for (size_t i = 0; i < values.size(); ++i)
    result.roots.push_back(root(expression, *rule.expr, values[i], results[i].is_list, false));
  if (!expression.failed()) check_unused_arguments(result, rule);
  check_choices(result.roots);
  op_.formulas.push_back(std::move(result));
}

// A decomposition that never looks at an argument computes something else.
void OpCompiler::check_unused_arguments(const CompiledFormula& formula, const Rule& rule) {
  const std::vector<bool> used = op_.program.reachable(formula.roots);
  for (size_t arg = 0; arg < entry_.signature.args.size(); ++arg) {
    const Arg& spec = entry_.signature.args[arg];
    if (spec.type == BP_TYPE_DEVICE || spec.type == BP_TYPE_STR) continue;
    bool found = false;
    for (size_t i = 0; i < used.size() && !found; ++i)
      found = used[i] && op_.program.nodes()[i].kind == BP_NODE_ARG &&
              op_.program.nodes()[i].imm == static_cast<int64_t>(arg);
    if (!found)
      error(rule.where, "the decomposition of '" + entry_.name() + "' never uses its input '" + spec.name +
                            "'; use it, or remove the argument");
  }
}

void OpCompiler::compile_put() {
  if (!entry_.put) {
    if (entry_.view)
      error(entry_.where, "view '" + entry_.name() +
                              "' has no 'put'; write the op that writes the piece v back, or put: {none: REASON}");
    return;
  }
  const Rule& rule = *entry_.put;
  if (!entry_.view && !entry_.maybe_view) {
    error(rule.where, "'put' stands only on views; write alias: x, or remove it");
    return;
  }
  if (rule.kind == Rule::Kind::kDamaged) return;
  CompiledFormula result = formula(BP_RULE_PUT, rule);
  if (rule.kind == Rule::Kind::kRefused) {
    result.flags = BP_FORMULA_REFUSED;
  } else {
    FormulaCompiler expression = compiler(rule.text, *rule.expr, BP_RULE_PUT);
    result.roots.push_back(root(expression, *rule.expr, expression.compile(*rule.expr), false, false));
    if (!expression.failed() && !reads(result, BP_NODE_COTANGENT))
      error(rule.where, "'put' never uses the piece 'v'; write it into the base");
  }
  op_.formulas.push_back(std::move(result));
}

}  // namespace backplane::codegen
