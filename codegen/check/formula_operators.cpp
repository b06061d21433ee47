// Operators, branches and lists of formulas. See the header.
#include "check/formula_compiler.hpp"

#include <algorithm>

namespace backplane::codegen {
namespace {

using Kind = Type::Kind;

// nullptr for a node that is not a constant.
const Const* constant_of(const Program& program, uint32_t node) {
  const Node& n = program.nodes()[node];
  return n.kind == BP_NODE_CONST ? &program.consts()[static_cast<size_t>(n.imm)] : nullptr;
}

// What to write where `not`, `and` or `or` met something else.
std::string bool_instead(const Type& found, const std::string& op) {
  if (found.is(Kind::kTensor)) return "; write logical_" + op + (op == "not" ? "(x)" : "(x, y)") + " of Tensors";
  return found.is_number() ? "; compare it with something, as in n != 0" : "; write a comparison, or present(x)";
}

}  // namespace

// ---- operators ----

Value FormulaCompiler::unary(const Expr& expr) {
  Value value = compile(*expr.children[0]);
  if (value.type.is(Kind::kAny)) return value;
  require_there(*expr.children[0], value);
  if (expr.name == "not") {
    if (!value.type.is(Kind::kBool) && !value.type.is(Kind::kAny))
      return fail(expr, "'not' takes a bool, not " + describe(value.type) + bool_instead(value.type, "not"));
    return {program_.builtin("not", {value.node}), Type::of(Kind::kBool)};
  }
  if (value.type.is(Kind::kTensor)) return tensor_operator(expr, expr.symbol, {value});
  if (!value.type.is_number() && !value.type.is(Kind::kAny))
    return fail(expr, "'-' takes a number, not " + describe(value.type));
  if (const auto known = known_int(value.node)) {
    const auto negative = const_of(-*known);
    if (!negative) return fail(expr, compute("sub", 0, known).fault);
    return constant(Kind::kInt, *negative);
  }
  if (const Const* c = constant_of(program_, value.node); c && c->tag == BP_TAG_FLOAT)
    return constant(value.type.kind, {BP_TAG_FLOAT, 0, -c->number, {}});
  return {program_.builtin("neg", {value.node}), Type::of(value.type.is(Kind::kInt) ? Kind::kInt : Kind::kNumber)};
}

Value FormulaCompiler::binary(const Expr& expr) {
  Value a = compile(*expr.children[0]);
  Value b = compile(*expr.children[1]);
  const std::string& op = expr.name;
  const bool equality = op == "eq" || op == "ne";
  if (op == "and" || op == "or") {
    for (const Value* value : {&a, &b})
      if (!value->type.is(Kind::kBool) && !value->type.is(Kind::kAny))
        return fail(expr, "'" + op + "' takes bools, not " + describe(value->type) + bool_instead(value->type, op));
    return {program_.builtin(op, {a.node, b.node}), Type::of(Kind::kBool)};
  }
  require_there(*expr.children[0], a);
  require_there(*expr.children[1], b);
  if (a.type.is(Kind::kAny) || b.type.is(Kind::kAny)) return reported();
  if (a.type.is(Kind::kTensor) || b.type.is(Kind::kTensor)) return tensor_operator(expr, expr.symbol, {a, b});
  if (equality) {
    refuse_other_word(*expr.children[1], a, b);
    refuse_other_word(*expr.children[0], b, a);
  }
  const bool comparison = equality || op == "lt" || op == "le" || op == "gt" || op == "ge";
  const bool numbers = a.type.is_number() && b.type.is_number();
  if (comparison && (numbers || (equality && a.type.kind == b.type.kind)))
    return {program_.builtin(op, {a.node, b.node}), Type::of(Kind::kBool)};
  if (op == "add" && a.type.is_list() && b.type.is_list()) {
    bool ok = true;
    const Type joined = join(a.type, b.type, ok);
    if (ok) return {program_.builtin("concat", {a.node, b.node}), joined};
  }
  if (comparison || !numbers || op == "matmul")
    return fail(expr, "this operator does not take " + describe(a.type) + " and " + describe(b.type) +
                          "; it works on " + (op == "matmul" ? "two Tensors" : "two numbers or Tensors") +
                          (op == "add" ? " or two lists"
                           : equality  ? " or two values of one type"
                                       : ""));
  return arithmetic(expr, a, b);
}

Value FormulaCompiler::arithmetic(const Expr& expr, const Value& a, const Value& b) {
  const bool ints = a.type.is(Kind::kInt) && b.type.is(Kind::kInt) && expr.name != "truediv";
  const Value value{program_.builtin(expr.name, {a.node, b.node}), Type::of(ints ? Kind::kInt : Kind::kNumber)};
  if (!ints) return value;
  const KnownInt known = compute(expr.name, known_int(a.node), known_int(b.node));
  if (!known.fault.empty()) return fail(expr, known.fault);
  if (known.value) known_ints_[value.node] = *known.value;
  return value;
}

std::optional<WideInt> FormulaCompiler::known_int(uint32_t node) const {
  if (const Const* c = constant_of(program_, node)) return int_of(*c);
  const auto known = known_ints_.find(node);
  return known == known_ints_.end() ? std::nullopt : std::optional(known->second);
}

// A comparison with a text that the argument never is.
void FormulaCompiler::refuse_other_word(const Expr& at, const Value& argument, const Value& word) {
  const Node& node = program_.nodes()[argument.node];
  if (node.kind == BP_NODE_ARG)
    refuse_other_word(at, entry_, entry_.signature.args[static_cast<size_t>(node.imm)], word.node);
}

// The same as a call of the op that the registry states for the operator: no number is computed here, and nothing
// moves.
Value FormulaCompiler::tensor_operator(const Expr& expr, std::string_view symbol, const std::vector<Value>& operands) {
  const Entry* callee = registry_.find_operator(symbol, operands.size(), entry_.ns);
  if (callee) return op(expr, *callee, operands);
  return fail(expr, "no op states `operator: '" + std::string(symbol) +
                        "'`, so it has no meaning on a Tensor; import " + "ops.yaml (--import), or call an op");
}

void FormulaCompiler::collect_present(const Expr& condition, bool holds, std::set<uint32_t>& out) {
  if (condition.kind == Expr::Kind::kUnary && condition.name == "not")
    return collect_present(*condition.children[0], !holds, out);
  if (condition.kind == Expr::Kind::kBinary && condition.name == (holds ? "and" : "or")) {
    collect_present(*condition.children[0], holds, out);
    collect_present(*condition.children[1], holds, out);
    return;
  }
  if (holds && condition.kind == Expr::Kind::kCall && condition.name == "present" && condition.children.size() == 1)
    out.insert(compile(*condition.children[0]).node);
}

Value FormulaCompiler::conditional(const Expr& expr) {
  const Value condition = compile(*expr.children[0]);
  if (condition.type.is(Kind::kTensor))
    return fail(*expr.children[0],
                "a condition looks at attributes, not at a Tensor's values; choose values by where(cond, x, y)");
  if (!condition.type.is(Kind::kBool) && !condition.type.is(Kind::kAny))
    return fail(*expr.children[0],
                "a condition is a bool, not " + describe(condition.type) + "; compare it with something");
  const std::set<uint32_t> outer = present_;
  collect_present(*expr.children[0], true, present_);
  const Value yes = compile(*expr.children[1]);
  present_ = outer;
  collect_present(*expr.children[0], false, present_);
  const Value no = compile(*expr.children[2]);
  present_ = outer;
  bool ok = true;
  const Type type = join(yes.type, no.type, ok);
  if (!ok)
    return fail(expr, "one branch gives " + describe(yes.type) + ", the other " + describe(no.type) +
                          "; both must give the same type");
  return {program_.add(BP_NODE_IF, 0, {condition.node, yes.node, no.node}), type};
}

// ---- lists ----

Value FormulaCompiler::list(const Expr& expr) {
  std::vector<uint32_t> nodes;
  Type element;
  bool ok = true;
  for (const ExprPtr& child : expr.children) {
    const Value value = compile(*child);
    nodes.push_back(value.node);
    if (nodes.size() > 1 && value.type.is_number() != element.is_number() &&
        (value.type.is(Kind::kTensor) || element.is(Kind::kTensor)))
      ok = false;
    else
      element = nodes.size() == 1 ? value.type : join(element, value.type, ok);
    if (!ok) return fail(*child, "the list's elements are of different types; make them all ints, numbers or Tensors");
  }
  Type type = Type::of(Kind::kInts);
  if (!nodes.empty()) {
    if (element.is(Kind::kTensor))
      type.kind = Kind::kTensorList;
    else if (element.is(Kind::kAny))
      type.kind = Kind::kAny;
    else if (element.is(Kind::kNone) || (element.is(Kind::kInt) && element.optional))
      type.kind = Kind::kValues;
    else if (element.is_number())
      type.kind = element.is(Kind::kInt) ? Kind::kInts : Kind::kNumbers;
    else
      return fail(expr, "a list holds ints, numbers or Tensors, not " + describe(element));
    type.optional_elements = element.optional || element.is(Kind::kNone);
  }
  return {program_.add(BP_NODE_LIST, 0, std::move(nodes)), type};
}

Type FormulaCompiler::element_type(const Expr& at, const Value& list) {
  Type type;
  switch (list.type.kind) {
    case Kind::kAny:
      return type;
    case Kind::kInts:
    case Kind::kValues:
      type.kind = Kind::kInt;
      break;
    case Kind::kNumbers:
      type.kind = Kind::kNumber;
      break;
    case Kind::kTensorList:
      type.kind = Kind::kTensor;
      break;
    default:
      error(at.offset, describe(list.type) + " is not a list; " +
                           (list.type.is(Kind::kTensor) ? "write select(x, axis, index), slice or take of a Tensor"
                                                        : "write a list here"));
      return type;
  }
  type.optional = list.type.optional_elements;
  return type;
}

Value FormulaCompiler::index(const Expr& expr) {
  Value base = compile(*expr.children[0]);
  const Value position = compile(*expr.children[1]);
  require_there(*expr.children[0], base);
  if (!position.type.is(Kind::kInt) && !position.type.is(Kind::kAny))
    return fail(*expr.children[1], "an index is an int, not " + describe(position.type));
  if (base.type.is(Kind::kTuple)) {
    const auto& results = base.type.op->signature.results;
    const std::optional<WideInt> at = known_int(position.node);
    if (!at || *at < 0 || *at >= static_cast<int64_t>(results.size()))
      return fail(expr, "'" + base.type.op->name() + "' has " + std::to_string(results.size()) +
                            " results; index them by a literal below that");
    return {program_.add(BP_NODE_SELECT, static_cast<int64_t>(*at), {base.node}),
            Type::of(results[static_cast<size_t>(*at)].is_list ? Kind::kTensorList : Kind::kTensor)};
  }
  const Type element = element_type(*expr.children[0], base);
  refuse_index(*expr.children[1], base, position);
  return {program_.builtin("getitem", {base.node, position.node}), element};
}

void FormulaCompiler::refuse_index(const Expr& at, const Value& list, const Value& position) {
  const std::optional<WideInt> index = known_int(position.node);
  const std::optional<size_t> most = most_elements(program_, list.node);
  if (!index || !most || (*index >= -static_cast<WideInt>(*most) && *index < static_cast<WideInt>(*most))) return;
  const bool exact = program_.nodes()[list.node].kind == BP_NODE_LIST;
  error(at.offset, "this index is outside of the list, which has " + std::string(exact ? "" : "at most ") +
                       std::to_string(*most) + (*most == 1 ? " element" : " elements"));
}

Value FormulaCompiler::slice(const Expr& expr) {
  Value base = compile(*expr.children[0]);
  require_there(*expr.children[0], base);
  element_type(*expr.children[0], base);
  uint32_t bounds[2];
  for (size_t i = 0; i < 2; ++i) {
    const ExprPtr& bound = expr.children[i + 1];
    const Value value = bound ? compile(*bound) : Value{program_.absent(), Type::of(Kind::kInt)};
    if (!value.type.is(Kind::kInt) && !value.type.is(Kind::kAny))
      error(bound->offset, "a slice's bound is an int, not " + describe(value.type));
    bounds[i] = value.node;
  }
  return {program_.builtin("getslice", {base.node, bounds[0], bounds[1]}), base.type};
}

}  // namespace backplane::codegen
