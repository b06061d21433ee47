// The walk over a formula's tree, and its bindings. Names are in formula_names.cpp, operators, branches and lists in
// formula_operators.cpp, calls in formula_calls.cpp. See the header.
#include "check/formula_compiler.hpp"

#include <algorithm>
#include <utility>

#include "check/names.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {
using Kind = Type::Kind;

// Names, their attributes and elements, and arithmetic on them: worth nothing to compute ahead.
bool is_plain(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::kCall:
    case Expr::Kind::kIf:
    case Expr::Kind::kLet:
    case Expr::Kind::kMap:
    case Expr::Kind::kFold:
      return false;
    default:
      return std::all_of(expr.children.begin(), expr.children.end(),
                         [](const ExprPtr& c) { return !c || is_plain(*c); });
  }
}

}  // namespace

FormulaCompiler::FormulaCompiler(const Registry& registry, const Entry& entry, Program& program,
                                 Diagnostics& diagnostics, const Text& text, const Expr& expr, FormulaContext context)
    : registry_(registry),
      entry_(entry),
      program_(program),
      diagnostics_(diagnostics),
      whole_(expr),
      context_(std::move(context)),
      scope_{{}, &text, nullptr} {
  // A derivative is asked only for an argument that is there.
  if ((context_.rule == BP_RULE_VJP || context_.rule == BP_RULE_JVP) && context_.targets.size() == 1)
    present_.insert(program_.add(BP_NODE_ARG, context_.targets[0]));
  bind_lets(expr);
}

// As if they stood before the formula.
void FormulaCompiler::bind_lets(const Expr& expr) {
  const Text* formula = scope_.text;
  for (const Let* let : needed_lets(entry_, expr)) {
    scope_.text = &let->text;
    failed_ = failed_ || !let->expr;
    scope_.variables.push_back({let->name.value, let->expr ? compile(*let->expr) : reported(), 0, true, true});
  }
  scope_.text = formula;
}

void FormulaCompiler::error(size_t offset, std::string message) {
  failed_ = true;
  diagnostics_.error(scope_.text->location(offset), std::move(message));
}

Value FormulaCompiler::fail(const Expr& at, std::string message) {
  error(at.offset, std::move(message));
  return reported();
}

Value FormulaCompiler::constant(Kind kind, Const value) { return {program_.constant(value), Type::of(kind)}; }

Value FormulaCompiler::compile(const Expr& expr) {
  Value value = reported();
  switch (expr.kind) {
    case Expr::Kind::kInt:
      value = constant(Kind::kInt, {BP_TAG_INT, expr.integer, 0, {}, expr.large});
      break;
    case Expr::Kind::kFloat:
      value = constant(Kind::kNumber, {BP_TAG_FLOAT, 0, expr.number, {}});
      break;
    case Expr::Kind::kString:
      value = constant(Kind::kStr, {BP_TAG_STRING, 0, 0, expr.name});
      break;
    case Expr::Kind::kName:
      value = name(expr);
      break;
    case Expr::Kind::kAttribute:
      value = attribute(expr);
      break;
    case Expr::Kind::kCall:
      value = call(expr);
      break;
    case Expr::Kind::kUnary:
      value = unary(expr);
      break;
    case Expr::Kind::kBinary:
      value = binary(expr);
      break;
    case Expr::Kind::kIf:
      value = conditional(expr);
      break;
    case Expr::Kind::kList:
      value = list(expr);
      break;
    case Expr::Kind::kIndex:
      value = index(expr);
      break;
    case Expr::Kind::kSlice:
      value = slice(expr);
      break;
    case Expr::Kind::kLet:
      value = let(expr);
      break;
    case Expr::Kind::kMap:
      value = map(expr);
      break;
    case Expr::Kind::kFold:
      value = fold(expr);
      break;
  }
  if (present_.count(value.node)) value.type.optional = false;
  return value;
}

std::vector<Value> FormulaCompiler::compile_several(const Expr& expr, size_t count, const std::string& what) {
  std::vector<Value> values;
  if (count == 1) return {compile(expr)};
  if (expr.kind == Expr::Kind::kLet) {
    const size_t depth = scope_.variables.size();
    scope_.variables.push_back({expr.name, compile(*expr.children[0]), expr.offset, false, true});
    values = compile_several(*expr.children[1], count, what);
    pop(depth);
    return values;
  }
  if (expr.kind == Expr::Kind::kList) {
    for (const ExprPtr& child : expr.children) values.push_back(compile(*child));
  } else {
    const Value value = compile(expr);
    if (value.type.is(Kind::kAny)) return std::vector<Value>(count, value);
    if (value.type.is(Kind::kTuple)) {
      for (size_t i = 0; i < value.type.op->signature.results.size(); ++i)
        values.push_back({program_.add(BP_NODE_SELECT, static_cast<int64_t>(i), {value.node}),
                          Type::of(value.type.op->signature.results[i].is_list ? Kind::kTensorList : Kind::kTensor)});
    } else {
      values.push_back(value);
    }
  }
  if (values.size() != count) {
    error(expr.offset, "the formula gives " + std::to_string(values.size()) +
                           (values.size() == 1 ? " value" : " values") + " for " + std::to_string(count) + " " + what +
                           "; write [a, b] or call an op with as many results");
    values.assign(count, reported());
  }
  return values;
}

// ---- bindings ----

void FormulaCompiler::pop(size_t size) {
  while (scope_.variables.size() > size) {
    const Variable& variable = scope_.variables.back();
    if (!variable.used && !failed_)
      error(variable.offset,
            variable.is_let ? "'" + variable.name + "' is never used; remove the let"
                            : "'" + variable.name + "' is never used in the body; write repeat(value, n), or use it");
    scope_.variables.pop_back();
  }
}

Value FormulaCompiler::let(const Expr& expr) {
  const size_t depth = scope_.variables.size();
  const Value bound = compile(*expr.children[0]);
  scope_.variables.push_back({expr.name, bound, expr.offset, false, true});
  const Value value = compile(*expr.children[1]);
  pop(depth);
  return value;
}

// As if the definition's formula stood here. What doubles with each definition has to end.
Value FormulaCompiler::expand(const Expr& call, const Definition& definition) {
  constexpr size_t kMaxExpansions = 1000, kMaxCallers = 16;
  if (++expansions_ > kMaxExpansions || callers_.size() >= kMaxCallers)
    return fail(call, "the formula expands definitions more than " + std::to_string(kMaxExpansions) + " times, or " +
                          std::to_string(kMaxCallers) + " deep; use let");
  if (is_expanding(definition))
    return fail(call, "the definition of '" + definition.word + "' leads back to itself; write it by other names");
  if (!call.keywords.empty() || call.children.size() != definition.params.size())
    return fail(call, "'" + definition.word + "' takes " + std::to_string(definition.params.size()) +
                          (definition.params.size() == 1 ? " value" : " values") + " in order; it is defined as " +
                          definition.name.value);
  Scope inner{{}, &definition.text, &definition};
  for (size_t i = 0; i < call.children.size(); ++i) {
    const Expr& child = *call.children[i];
    const bool plain = is_plain(child);
    inner.variables.push_back(
        {definition.params[i], plain ? reported() : compile(child), 0, true, false, plain ? &child : nullptr});
  }
  if (!definition.expr) return reported();
  callers_.push_back(std::exchange(scope_, std::move(inner)));
  const Value value = compile(*definition.expr);
  scope_ = std::move(callers_.back());
  callers_.pop_back();
  return value;
}

bool FormulaCompiler::is_expanding(const Definition& definition) const {
  return scope_.definition == &definition ||
         std::any_of(callers_.begin(), callers_.end(), [&](const Scope& s) { return s.definition == &definition; });
}

// Where the parameter is read: its value may be known to be there only in that branch.
Value FormulaCompiler::in_caller(const Expr& given) {
  Scope inner = std::exchange(scope_, std::move(callers_.back()));
  callers_.pop_back();
  const Value value = compile(given);
  callers_.push_back(std::exchange(scope_, std::move(inner)));
  return value;
}

Value FormulaCompiler::map(const Expr& expr) {
  const Value over = compile(*expr.children[0]);
  const Type element = element_type(*expr.children[0], over);
  const int64_t slot = program_.slots(1);
  const size_t depth = scope_.variables.size();
  scope_.variables.push_back({expr.name, {program_.add(BP_NODE_VAR, slot), element}, expr.offset, false, false});
  const Value body = compile(*expr.children[1]);
  scope_.variables.back().used = true;
  pop(depth);
  Type type = Type::of(Kind::kInts);
  if (body.type.is(Kind::kTensor))
    type.kind = Kind::kTensorList;
  else if (body.type.is(Kind::kAny))
    type.kind = Kind::kAny;
  else if (body.type.is_number())
    type.kind = body.type.is(Kind::kInt) ? Kind::kInts : Kind::kNumbers;
  else
    return fail(*expr.children[1],
                "the body of map gives " + describe(body.type) + "; it must give an int, a number or a Tensor");
  type.optional_elements = body.type.optional;
  return {program_.add(BP_NODE_MAP, slot, {over.node, body.node}), type};
}

Value FormulaCompiler::fold(const Expr& expr) {
  const Value initial = compile(*expr.children[0]);
  const Value over = compile(*expr.children[1]);
  const Type element = element_type(*expr.children[1], over);
  const int64_t slot = program_.slots(2);
  const size_t depth = scope_.variables.size();
  scope_.variables.push_back({expr.name, {program_.add(BP_NODE_VAR, slot), initial.type}, expr.offset, false, false});
  scope_.variables.push_back({expr.element, {program_.add(BP_NODE_VAR, slot + 1), element}, expr.offset, false, false});
  const Value body = compile(*expr.children[2]);
  pop(depth);
  bool ok = true;
  const Type type = join(initial.type, body.type, ok);
  if (!ok || (!type.is(Kind::kAny) && type.kind != initial.type.kind && !type.is(Kind::kNumber)))
    return fail(*expr.children[2], "the body of fold gives " + describe(body.type) + " but the accumulator is " +
                                       describe(initial.type) + "; both must be one type");
  return {program_.add(BP_NODE_FOLD, slot, {over.node, initial.node, body.node}), type};
}

}  // namespace backplane::codegen
