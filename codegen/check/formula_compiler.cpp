// Names, attributes, operators, lists and bindings of formulas; calls are in formula_calls.cpp. See the header.
#include "check/formula_compiler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

using Kind = Type::Kind;

Type make(Kind kind) {
  Type type;
  type.kind = kind;
  return type;
}

bool constant_number(const Program& program, uint32_t node, Const& out) {
  const Node& n = program.nodes()[node];
  if (n.kind != BP_NODE_CONST) return false;
  out = program.consts()[static_cast<size_t>(n.imm)];
  return out.tag == BP_TAG_INT || out.tag == BP_TAG_FLOAT;
}

}  // namespace

FormulaCompiler::FormulaCompiler(const Registry& registry, const Entry& entry, Program& program,
                                 Diagnostics& diagnostics, const Text& text, FormulaContext context)
    : registry_(registry),
      entry_(entry),
      program_(program),
      diagnostics_(diagnostics),
      text_(text),
      context_(std::move(context)) {
  // A derivative is asked only for an argument that is there.
  if ((context_.rule == BP_RULE_VJP || context_.rule == BP_RULE_JVP) && context_.targets.size() == 1)
    present_.insert(program_.add(BP_NODE_ARG, context_.targets[0]));
}

void FormulaCompiler::error(size_t offset, std::string message) {
  failed_ = true;
  diagnostics_.error(text_.location(offset), std::move(message));
}

Value FormulaCompiler::fail(const Expr& at, std::string message) {
  error(at.offset, std::move(message));
  return reported();
}

Value FormulaCompiler::constant(Kind kind, Const value) { return {program_.constant(value), make(kind)}; }

Value FormulaCompiler::compile(const Expr& expr) {
  Value value = reported();
  switch (expr.kind) {
    case Expr::Kind::kInt:
      value = constant(Kind::kInt, {BP_TAG_INT, expr.integer, 0, {}});
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
    const size_t depth = variables_.size();
    variables_.push_back({expr.name, compile(*expr.children[0]), expr.offset, false, true});
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
                          make(value.type.op->signature.results[i].is_list ? Kind::kTensorList : Kind::kTensor)});
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

// ---- names ----

bool FormulaCompiler::literal_word(const Expr& expr, Value& out) {
  const std::string& word = expr.name;
  if (word == "true" || word == "false")
    out = constant(Kind::kBool, {BP_TAG_BOOL, word == "true", 0, {}});
  else if (word == "none")
    out = {program_.absent(), make(Kind::kNone)};
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
  for (auto variable = variables_.rbegin(); variable != variables_.rend(); ++variable) {
    if (variable->name != expr.name) continue;
    variable->used = true;
    return variable->value;
  }
  if (const auto given = context_.given.find(expr.name); given != context_.given.end()) return given->second;
  if (const int arg = entry_.signature.find_arg(expr.name); arg >= 0) return argument(static_cast<size_t>(arg));
  Value value;
  if (literal_word(expr, value)) return value;
  return special(expr);
}

Value FormulaCompiler::special(const Expr& expr) {
  const std::string& word = expr.name;
  const auto& results = entry_.signature.results;
  const bool derivative = (context_.rule == BP_RULE_VJP || context_.rule == BP_RULE_JVP);
  const auto result = [&](uint16_t kind) {
    if (results.size() > 1)
      return fail(expr, "'" + entry_.name() + "' has several results; write " + word + "." + results[0].name);
    Value value{program_.add(kind, 0), make(results[0].is_list ? Kind::kTensorList : Kind::kTensor)};
    value.type.optional = kind == BP_NODE_COTANGENT && entry_.pass_zeros;
    return value;
  };
  if (word == "out" && derivative) return result(BP_NODE_OUT);
  if (word == "g" && context_.rule == BP_RULE_VJP && !context_.partial) return result(BP_NODE_COTANGENT);
  if (word == "v" && context_.rule == BP_RULE_PUT) return {program_.add(BP_NODE_COTANGENT, 0), make(Kind::kTensor)};
  if (word == "t" && context_.rule == BP_RULE_JVP && !context_.partial) {
    if (context_.targets.size() != 1) return fail(expr, "several tangents are read here; write t.x for that of x");
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
                          (word == "needs" ? "; write needs.x in 'vjp'" : "; use the arguments"));
  return fail(expr,
              "unknown name '" + word + "'" + suggestion(word, visible_names()) + "; arguments are " + listed([&] {
                std::vector<std::string_view> names;
                for (const Arg& arg : entry_.signature.args) names.push_back(arg.name);
                return names;
              }()));
}

std::vector<std::string_view> FormulaCompiler::visible_names() const {
  std::vector<std::string_view> names = {"out", "true", "false", "none", "inf", "nan", "pi"};
  for (const Arg& arg : entry_.signature.args) names.push_back(arg.name);
  for (const Variable& variable : variables_) names.push_back(variable.name);
  return names;
}

// ---- attributes ----

Value FormulaCompiler::attribute(const Expr& expr) {
  Value value;
  if (expr.children[0]->kind == Expr::Kind::kName && special_member(expr, value)) return value;
  const Expr& base = *expr.children[0];
  // A view's base keeps its shape when it is replaced by zeros; its data need not be kept.
  if (base.kind == Expr::Kind::kName && context_.given.count(base.name))
    if (const int arg = entry_.signature.find_arg(base.name); arg >= 0)
      if (std::none_of(variables_.begin(), variables_.end(), [&](const Variable& v) { return v.name == base.name; }))
        return member(expr, argument(static_cast<size_t>(arg)));
  return member(expr, compile(base));
}

// `g.NAME`, `out.NAME`, `t.x`, `needs.x`, `b.x`
bool FormulaCompiler::special_member(const Expr& expr, Value& out) {
  const std::string& base = expr.children[0]->name;
  for (const Variable& variable : variables_)
    if (variable.name == base) return false;
  const bool derivative = context_.rule == BP_RULE_VJP || context_.rule == BP_RULE_JVP;
  const bool several = entry_.signature.results.size() > 1;
  if (several &&
      ((base == "g" && context_.rule == BP_RULE_VJP && !context_.partial) || (base == "out" && derivative))) {
    out = member_of_results(expr, base == "g" ? BP_NODE_COTANGENT : BP_NODE_OUT);
    return true;
  }
  uint16_t kind = 0;
  if (base == "t" && context_.rule == BP_RULE_JVP && !context_.partial)
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
    out = fail(expr, "the addend of one argument's tangent reads another's, t." + expr.name +
                         "; write a rule for \"(x, y)\" together");
    return true;
  }
  out = {program_.add(kind, arg),
         kind == BP_NODE_TANGENT ? type_of(entry_.signature.args[static_cast<size_t>(arg)]) : make(Kind::kBool)};
  out.type.optional = false;
  return true;
}

Value FormulaCompiler::member_of_results(const Expr& expr, uint16_t kind) {
  const int result = entry_.signature.find_result(expr.name);
  if (result < 0) {
    std::vector<std::string_view> names;
    for (const ResultSpec& r : entry_.signature.results) names.push_back(r.name);
    return fail(expr, "'" + expr.name + "' is no result of '" + entry_.name() + "'" + suggestion(expr.name, names) +
                          "; results are " + listed(names));
  }
  const ResultSpec& spec = entry_.signature.results[static_cast<size_t>(result)];
  if (kind == BP_NODE_COTANGENT && spec.nondiff)
    return fail(expr, "result '" + spec.name + "' is a constant and has no cotangent; use the others");
  Value value{program_.add(kind, result), make(spec.is_list ? Kind::kTensorList : Kind::kTensor)};
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
              make(base.type.op->signature.results[static_cast<size_t>(result)].is_list ? Kind::kTensorList
                                                                                        : Kind::kTensor)};
    return fail(expr, "'" + expr.name + "' is no result of '" + base.type.op->name() + "'; name one of its results");
  }
  if (!base.type.is(Kind::kTensor))
    return fail(expr, describe(base.type) + " has no attribute '" + expr.name +
                          "'; only Tensors have shape, ndim, dtype and device");
  require_there(*expr.children[0], base);
  if (expr.name == "shape") return {program_.add(BP_NODE_SHAPE, 0, {base.node}), make(Kind::kInts)};
  if (expr.name == "ndim") return {program_.add(BP_NODE_NDIM, 0, {base.node}), make(Kind::kInt)};
  if (expr.name == "dtype") return {program_.add(BP_NODE_DTYPE, 0, {base.node}), make(Kind::kDtype)};
  if (expr.name == "device") return {program_.add(BP_NODE_DEVICE, 0, {base.node}), make(Kind::kDevice)};
  const std::vector<std::string_view> names = {"shape", "ndim", "dtype", "device"};
  return fail(expr, "a Tensor has no attribute '" + expr.name + "'" + suggestion(expr.name, names) + "; there are " +
                        listed(names));
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

// ---- operators ----

Value FormulaCompiler::unary(const Expr& expr) {
  Value value = compile(*expr.children[0]);
  if (value.type.is(Kind::kAny)) return value;
  require_there(*expr.children[0], value);
  if (expr.name == "not") {
    if (!value.type.is(Kind::kBool) && !value.type.is(Kind::kAny))
      return fail(expr, "'not' takes a bool, not " + describe(value.type));
    return {program_.builtin("not", {value.node}), make(Kind::kBool)};
  }
  if (value.type.is(Kind::kTensor))
    return fail(expr, "operators work on numbers; call an op such as negative(x) on a Tensor");
  if (!value.type.is_number() && !value.type.is(Kind::kAny))
    return fail(expr, "'-' takes a number, not " + describe(value.type));
  if (Const c; constant_number(program_, value.node, c)) {
    c.integer = -c.integer;
    c.number = c.tag == BP_TAG_FLOAT ? -c.number : 0;
    return constant(value.type.kind, c);
  }
  return {program_.builtin("neg", {value.node}), make(value.type.is(Kind::kInt) ? Kind::kInt : Kind::kNumber)};
}

Value FormulaCompiler::binary(const Expr& expr) {
  Value a = compile(*expr.children[0]);
  Value b = compile(*expr.children[1]);
  const std::string& op = expr.name;
  const bool equality = op == "eq" || op == "ne";
  if (op == "and" || op == "or") {
    for (const Value* value : {&a, &b})
      if (!value->type.is(Kind::kBool) && !value->type.is(Kind::kAny))
        return fail(expr, "'" + op + "' takes bools, not " + describe(value->type));
    return {program_.builtin(op, {a.node, b.node}), make(Kind::kBool)};
  }
  require_there(*expr.children[0], a);
  require_there(*expr.children[1], b);
  if (a.type.is(Kind::kAny) || b.type.is(Kind::kAny)) return reported();
  if (a.type.is(Kind::kTensor) || b.type.is(Kind::kTensor))
    return fail(expr, "operators work on numbers and lists; call an op such as add(x, y) on Tensors");
  const bool comparison = equality || op == "lt" || op == "le" || op == "gt" || op == "ge";
  const bool numbers = a.type.is_number() && b.type.is_number();
  if (comparison && (numbers || (equality && a.type.kind == b.type.kind)))
    return {program_.builtin(op, {a.node, b.node}), make(Kind::kBool)};
  if (op == "add" && a.type.is_list() && b.type.is_list()) {
    bool ok = true;
    const Type joined = join(a.type, b.type, ok);
    if (ok) return {program_.builtin("concat", {a.node, b.node}), joined};
  }
  if (comparison || !numbers)
    return fail(expr, "this operator does not take " + describe(a.type) + " and " + describe(b.type) +
                          "; it works on two numbers" +
                          (op == "add" ? " or two lists"
                           : equality  ? " or two values of one type"
                                       : ""));
  const bool ints = a.type.is(Kind::kInt) && b.type.is(Kind::kInt) && op != "truediv";
  return {program_.builtin(op, {a.node, b.node}), make(ints ? Kind::kInt : Kind::kNumber)};
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
    element = nodes.size() == 1 ? value.type : join(element, value.type, ok);
    if (!ok) return fail(*child, "the list's elements are of different types; make them all ints, numbers or Tensors");
  }
  Type type = make(Kind::kInts);
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
      error(at.offset, describe(list.type) + " is no list; write a list here");
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
  const Node& n = program_.nodes()[position.node];
  const bool literal = n.kind == BP_NODE_CONST && program_.consts()[static_cast<size_t>(n.imm)].tag == BP_TAG_INT;
  const int64_t at = literal ? program_.consts()[static_cast<size_t>(n.imm)].integer : -1;
  if (base.type.is(Kind::kTuple)) {
    const auto& results = base.type.op->signature.results;
    if (!literal || at < 0 || at >= static_cast<int64_t>(results.size()))
      return fail(expr, "'" + base.type.op->name() + "' has " + std::to_string(results.size()) +
                            " results; index them by a literal below that");
    return {program_.add(BP_NODE_SELECT, at, {base.node}),
            make(results[static_cast<size_t>(at)].is_list ? Kind::kTensorList : Kind::kTensor)};
  }
  const Type element = element_type(*expr.children[0], base);
  return {program_.builtin("getitem", {base.node, position.node}), element};
}

Value FormulaCompiler::slice(const Expr& expr) {
  Value base = compile(*expr.children[0]);
  require_there(*expr.children[0], base);
  element_type(*expr.children[0], base);
  uint32_t bounds[2];
  for (size_t i = 0; i < 2; ++i) {
    const ExprPtr& bound = expr.children[i + 1];
    const Value value = bound ? compile(*bound) : Value{program_.absent(), make(Kind::kInt)};
    if (!value.type.is(Kind::kInt) && !value.type.is(Kind::kAny))
      error(bound->offset, "a slice's bound is an int, not " + describe(value.type));
    bounds[i] = value.node;
  }
  return {program_.builtin("getslice", {base.node, bounds[0], bounds[1]}), base.type};
}

// ---- bindings ----

void FormulaCompiler::pop(size_t size) {
  while (variables_.size() > size) {
    const Variable& variable = variables_.back();
    if (!variable.used && !failed_)
      error(variable.offset,
            variable.is_let ? "'" + variable.name + "' is never used; remove the let"
                            : "'" + variable.name + "' is never used in the body; write repeat(value, n), or use it");
    variables_.pop_back();
  }
}

Value FormulaCompiler::let(const Expr& expr) {
  const size_t depth = variables_.size();
  const Value bound = compile(*expr.children[0]);
  variables_.push_back({expr.name, bound, expr.offset, false, true});
  const Value value = compile(*expr.children[1]);
  pop(depth);
  return value;
}

Value FormulaCompiler::map(const Expr& expr) {
  const Value over = compile(*expr.children[0]);
  const Type element = element_type(*expr.children[0], over);
  const int64_t slot = program_.slots(1);
  const size_t depth = variables_.size();
  variables_.push_back({expr.name, {program_.add(BP_NODE_VAR, slot), element}, expr.offset, false, false});
  const Value body = compile(*expr.children[1]);
  variables_.back().used = true;
  pop(depth);
  Type type = make(Kind::kInts);
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
  const size_t depth = variables_.size();
  variables_.push_back({expr.name, {program_.add(BP_NODE_VAR, slot), initial.type}, expr.offset, false, false});
  variables_.push_back({expr.element, {program_.add(BP_NODE_VAR, slot + 1), element}, expr.offset, false, false});
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
