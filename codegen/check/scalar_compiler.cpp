// Names, operators and bindings of a formula over elements; see scalar_compiler.hpp.
#include "check/scalar_compiler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "check/names.hpp"
#include "schema/identifiers.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

constexpr size_t kMaxSteps = 100'000;  // definitions that use each other twice double at each level

bool is_complex(bp_dtype dtype) { return has(BP_MASK_COMPLEX, dtype); }
bool is_order(std::string_view symbol) { return symbol == "<" || symbol == "<=" || symbol == ">" || symbol == ">="; }
bool is_equality(std::string_view symbol) { return symbol == "==" || symbol == "!="; }
bool is_arithmetic(std::string_view symbol) { return symbol == "+" || symbol == "-" || symbol == "*"; }

}  // namespace

bool ScalarCompiler::compile(const Text& text, const Expr& expr) {
  text_ = &text;
  const Entry& entry = *function_.entry;
  auto param = function_.params.begin();
  for (const Arg& arg : entry.signature.args) {
    if (arg.type == BP_TYPE_DTYPE) {
      scope_.emplace_back(arg.name, Value{Value::Kind::kDtype, 0, 0, function_.result, {}});
    } else {
      scope_.emplace_back(arg.name, add({ScalarNode::Kind::kName, param->dtype, param->name, 0, 0, {}}));
      ++param;
    }
  }
  for (const Let* let : needed_lets(entry, expr)) {
    text_ = &let->text;
    Maybe value = let->expr ? lower(*let->expr) : std::nullopt;
    if (!value) return false;
    scope_.emplace_back(let->name.value, named(*value, let->name.value));
  }
  text_ = &text;
  Maybe value = lower(expr);
  if (value) value = adopt(expr, *value, function_.result);
  if (!value) return false;
  function_.root = value->node;
  drop_unused_locals();
  return true;
}

void ScalarCompiler::drop_unused_locals() {
  std::set<std::string> used;
  const auto visit = [&](const auto& self, uint32_t index) -> void {
    const ScalarNode& node = function_.nodes[index];
    if (node.kind == ScalarNode::Kind::kName) used.insert(node.name);
    for (const uint32_t child : node.children) self(self, child);
  };
  visit(visit, function_.root);
  std::vector<ScalarName> kept;
  for (auto local = function_.locals.rbegin(); local != function_.locals.rend(); ++local) {
    if (!used.count(local->name)) continue;
    visit(visit, local->value);
    kept.insert(kept.begin(), std::move(*local));
  }
  function_.locals = std::move(kept);
}

std::nullopt_t ScalarCompiler::error(const Expr& at, const std::string& message) {
  diagnostics_.error(text_->location(at.offset), message);
  return std::nullopt;
}

ScalarCompiler::Value ScalarCompiler::add(ScalarNode node) {
  function_.dtypes.insert(node.dtype);
  function_.nodes.push_back(std::move(node));
  return {Value::Kind::kNode, static_cast<uint32_t>(function_.nodes.size() - 1), 0, 0, {}};
}

// A digit at the end keeps clear of the words of all dialects.
std::string ScalarCompiler::fresh(std::string_view word) {
  std::string name = word.empty() || !is_identifier(word) ? "value" : c_identifier(std::string(word));
  while (name.size() > 1 && name.back() == '_') name.pop_back();
  return name + "_" + std::to_string(function_.params.size() + names_++);
}

ScalarCompiler::Value ScalarCompiler::named(Value value, std::string_view word) {
  if (!value.is_node()) return value;
  const ScalarNode& node = function_.nodes[value.node];
  if (node.kind == ScalarNode::Kind::kName || node.kind == ScalarNode::Kind::kNumber) return value;
  const bp_dtype dtype = node.dtype;
  function_.locals.push_back({fresh(word), dtype, value.node});
  return add({ScalarNode::Kind::kName, dtype, function_.locals.back().name, 0, 0, {}});
}

std::string ScalarCompiler::described(const Value& value) const {
  switch (value.kind) {
    case Value::Kind::kNode:
      return std::string(kDtypeNames[dtype_of(value)]);
    case Value::Kind::kDtype:
      return "a dtype";
    case Value::Kind::kBool:
      return "bool";
    case Value::Kind::kList:
      return "a list";
    default:
      return "a number";
  }
}

ScalarCompiler::Maybe ScalarCompiler::lower(const Expr& expr) {
  const ScalarLibrary::Level level(library_);
  if (level.too_deep() || ++steps_ > kMaxSteps)
    return error(expr, "this scalar formula, with all that it calls, is too large; split the op");
  switch (expr.kind) {
    case Expr::Kind::kInt:
      if (expr.large) return error(expr, "this int does not fit in 64 bits with a sign; write a float");
      return number(expr.integer);
    case Expr::Kind::kFloat:
      return number(expr.number);
    case Expr::Kind::kName:
      return name(expr);
    case Expr::Kind::kAttribute:
      return attribute(expr);
    case Expr::Kind::kCall:
      return call(expr);
    case Expr::Kind::kUnary:
      return unary(expr);
    case Expr::Kind::kBinary:
      return binary(expr);
    case Expr::Kind::kIf: {
      const Maybe condition = lower(*expr.children[0]);
      if (!condition) return std::nullopt;
      if (condition->kind == Value::Kind::kBool) return lower(*expr.children[condition->integer ? 1 : 2]);
      Maybe a = lower(*expr.children[1]), b = lower(*expr.children[2]);
      if (!a || !b) return std::nullopt;
      return choose(expr, *condition, *a, *b);
    }
    case Expr::Kind::kLet:
      return let(expr);
    case Expr::Kind::kFold:
      return fold(expr);
    case Expr::Kind::kList:
      return table(expr);
    default:
      return error(expr, "a scalar formula computes one element; it has no texts, slices or maps");
  }
}

ScalarCompiler::Maybe ScalarCompiler::name(const Expr& expr) {
  for (auto known = scope_.rbegin(); known != scope_.rend(); ++known)
    if (known->first == expr.name) return known->second;
  if (expr.name == "inf") return number(std::numeric_limits<double>::infinity());
  if (expr.name == "nan") return number(std::numeric_limits<double>::quiet_NaN());
  if (expr.name == "pi") return number(3.14159265358979323846);
  if (expr.name == "true" || expr.name == "false") return truth(expr.name == "true");
  if (const int dtype = find_dtype(expr.name); dtype >= 0) return Value{Value::Kind::kDtype, 0, 0, dtype, {}};
  const auto& tables = function_.entry->shared->tables;
  if (const auto table = tables.find(expr.name); table != tables.end()) return lower(*table->second.list);
  std::vector<std::string_view> names;
  for (const auto& [known, value] : scope_) names.push_back(known);
  return error(expr,
               "unknown name '" + expr.name + "'" + suggestion(expr.name, names) + "; names here are " + listed(names));
}

ScalarCompiler::Maybe ScalarCompiler::attribute(const Expr& expr) {
  const Maybe value = lower(*expr.children[0]);
  if (!value) return std::nullopt;
  if (expr.name != "dtype" || !value->is_node())
    return error(expr, "an element has no '" + expr.name + "'; the only attribute in a scalar formula is x.dtype");
  return Value{Value::Kind::kDtype, 0, 0, dtype_of(*value), {}};
}

ScalarCompiler::Maybe ScalarCompiler::unary(const Expr& expr) {
  const Maybe value = lower(*expr.children[0]);
  if (!value) return std::nullopt;
  if (expr.name == "not") {
    if (value->kind == Value::Kind::kBool) return truth(!value->integer);
    if (!value->is_node() || dtype_of(*value) != BP_BOOL)
      return error(expr, "'not' is of a bool, found " + described(*value) + "; write a comparison");
    return add({ScalarNode::Kind::kOperator, BP_BOOL, "not", 0, 0, {value->node}});
  }
  if (value->kind == Value::Kind::kInt) return number(-value->integer);
  if (value->kind == Value::Kind::kFloat) return number(-value->number);
  if (!value->is_node() || dtype_of(*value) == BP_BOOL)
    return error(expr, "'-' is of a number, found " + described(*value) + "; use 'not' of a bool");
  if (is_complex(dtype_of(*value))) return operator_call(expr, {*value});
  return add({ScalarNode::Kind::kOperator, dtype_of(*value), "neg", 0, 0, {value->node}});
}

ScalarCompiler::Maybe ScalarCompiler::logic(const Expr& expr, Value a, Value b) {
  for (const Value& value : {a, b}) {
    if (value.kind == Value::Kind::kBool || (value.is_node() && dtype_of(value) == BP_BOOL)) continue;
    return error(expr, "'" + expr.name + "' is of bools, found " + described(value) + "; write a comparison");
  }
  const bool both = expr.name == "and";
  if (a.kind == Value::Kind::kBool) return (a.integer != 0) == both ? b : a;
  if (b.kind == Value::Kind::kBool) return (b.integer != 0) == both ? a : b;
  return add({ScalarNode::Kind::kOperator, BP_BOOL, expr.name, 0, 0, {a.node, b.node}});
}

// Of two numbers, now.
ScalarCompiler::Maybe ScalarCompiler::numbers(const Expr& expr, const Value& a, const Value& b) {
  const std::string_view op = expr.symbol;
  const bool ints = a.kind == Value::Kind::kInt && b.kind == Value::Kind::kInt;
  const double x = a.as_double(), y = b.as_double();
  int64_t whole = 0;
  if (op == "+" && ints && !__builtin_add_overflow(a.integer, b.integer, &whole)) return number(whole);
  if (op == "-" && ints && !__builtin_sub_overflow(a.integer, b.integer, &whole)) return number(whole);
  if (op == "*" && ints && !__builtin_mul_overflow(a.integer, b.integer, &whole)) return number(whole);
  if (op == "+") return number(x + y);
  if (op == "-") return number(x - y);
  if (op == "*") return number(x * y);
  if (op == "/") return number(x / y);
  if (op == "**") return number(std::pow(x, y));
  if (op == "==") return truth(x == y);
  if (op == "!=") return truth(x != y);
  if (op == "<") return truth(x < y);
  if (op == "<=") return truth(x <= y);
  if (op == ">") return truth(x > y);
  if (op == ">=") return truth(x >= y);
  return error(expr, "'" + std::string(op) + "' of two numbers; write what it gives");
}

ScalarCompiler::Maybe ScalarCompiler::binary(const Expr& expr) {
  Maybe a = lower(*expr.children[0]), b = lower(*expr.children[1]);
  if (!a || !b) return std::nullopt;
  if (expr.name == "and" || expr.name == "or") return logic(expr, *a, *b);
  const std::string_view symbol = expr.symbol;
  if (a->kind == Value::Kind::kDtype && b->kind == Value::Kind::kDtype && is_equality(symbol))
    return truth((a->integer == b->integer) == (symbol == "=="));
  if (a->is_number() && b->is_number()) return numbers(expr, *a, *b);
  if (!unify(expr, {&*a, &*b})) return std::nullopt;
  const bp_dtype dtype = dtype_of(*a);
  const bool own = is_equality(symbol) || (is_order(symbol) && dtype != BP_BOOL) ||
                   (dtype != BP_BOOL && is_arithmetic(symbol)) || (has(BP_MASK_FLOATING, dtype) && symbol == "/");
  if (!own || is_complex(dtype)) return operator_call(expr, {*a, *b});
  const bp_dtype result = is_equality(symbol) || is_order(symbol) ? bp_dtype{BP_BOOL} : dtype;
  return add({ScalarNode::Kind::kOperator, result, std::string(symbol), 0, 0, {a->node, b->node}});
}

// What complex numbers, and the symbols beyond C's, mean is the entry's that states the operator.
ScalarCompiler::Maybe ScalarCompiler::operator_call(const Expr& expr, std::vector<Value> operands) {
  const std::string_view symbol = expr.kind == Expr::Kind::kUnary ? "-" : expr.symbol;
  const Entry* callee = library_.names().find_operator(symbol, operands.size(), function_.entry->ns);
  if (!callee)
    return error(expr, "'" + std::string(symbol) + "' has no meaning for " + described(operands[0]) +
                           "; call an op whose scalar says it");
  return entry_call(expr, *callee, std::vector<Maybe>(operands.begin(), operands.end()));
}

ScalarCompiler::Maybe ScalarCompiler::choose(const Expr& at, const Value& condition, Value a, Value b) {
  if (condition.kind == Value::Kind::kBool) return condition.integer ? a : b;
  if (!condition.is_node() || dtype_of(condition) != BP_BOOL)
    return error(at, "a choice is by a bool, found " + described(condition) + "; write a comparison");
  if (a.kind == Value::Kind::kBool && b.kind == Value::Kind::kBool) {
    const Maybe left = adopt(at, a, BP_BOOL);
    return choose(at, condition, *left, b);
  }
  if (!a.is_node() && !b.is_node()) return Value{Value::Kind::kWeakChoice, condition.node, 0, 0, {a, b}};
  if (!unify(at, {&a, &b})) return std::nullopt;
  return add({ScalarNode::Kind::kChoose, dtype_of(a), "", 0, 0, {condition.node, a.node, b.node}});
}

ScalarCompiler::Maybe ScalarCompiler::let(const Expr& expr) {
  const size_t outer = scope_.size();
  const Expr* at = &expr;
  for (; at->kind == Expr::Kind::kLet; at = at->children[1].get()) {
    const Maybe value = lower(*at->children[0]);
    if (!value) return std::nullopt;
    scope_.emplace_back(at->name, named(*value, at->name));
  }
  const Maybe result = lower(*at);
  scope_.resize(outer);
  return result;
}

// Unrolled: the list is one of numbers.
ScalarCompiler::Maybe ScalarCompiler::fold(const Expr& expr) {
  Maybe sum = lower(*expr.children[0]);
  const Maybe list = lower(*expr.children[1]);
  if (!sum || !list) return std::nullopt;
  if (list->kind != Value::Kind::kList || list->list.size() > 64)
    return error(expr, "a fold of a scalar formula goes over a list of at most 64 numbers");
  for (const Value& element : list->list) {
    scope_.emplace_back(expr.name, named(*sum, "sum"));
    scope_.emplace_back(expr.element, element);
    sum = lower(*expr.children[2]);
    scope_.resize(scope_.size() - 2);
    if (!sum) return std::nullopt;
  }
  return sum;
}

ScalarCompiler::Maybe ScalarCompiler::table(const Expr& expr) {
  Value list{Value::Kind::kList, 0, 0, 0, {}};
  for (const ExprPtr& child : expr.children) {
    const Maybe element = lower(*child);
    if (!element) return std::nullopt;
    if (!element->is_number()) return error(*child, "a list in a scalar formula holds numbers alone");
    list.list.push_back(*element);
  }
  return list;
}

// Brings all to one dtype: numbers take the dtype of the other operand, real ones become complex beside a complex one.
bool ScalarCompiler::unify(const Expr& at, std::vector<Value*> values, bp_dtype wanted) {
  for (const Value* value : values) {
    if (!value->is_node()) continue;
    const bp_dtype dtype = dtype_of(*value);
    if (wanted == BP_DTYPE_NONE || (is_complex(dtype) && part_of(dtype) == wanted)) wanted = dtype;
  }
  if (wanted == BP_DTYPE_NONE) {
    const bool bools =
        std::all_of(values.begin(), values.end(), [](const Value* value) { return value->kind == Value::Kind::kBool; });
    if (!bools) {
      error(at, "numbers alone have no dtype; write cast(…, float32)");
      return false;
    }
    wanted = BP_BOOL;
  }
  for (Value* value : values) {
    const Maybe adopted = adopt(at, *value, wanted);
    if (!adopted) return false;
    *value = *adopted;
  }
  return true;
}

ScalarCompiler::Maybe ScalarCompiler::adopt(const Expr& at, const Value& value, bp_dtype dtype) {
  const std::string wanted(kDtypeNames[dtype]);
  if (value.is_node()) {
    if (dtype_of(value) == dtype) return value;
    if (is_complex(dtype) && part_of(dtype) == dtype_of(value)) return pair(at, value, number(0.0));
    return error(at, "found " + described(value) + " where " + wanted + " is expected; write cast(…, " + wanted + ")");
  }
  if (value.kind == Value::Kind::kWeakChoice) {
    const Maybe a = adopt(at, value.list[0], dtype), b = adopt(at, value.list[1], dtype);
    if (!a || !b) return std::nullopt;
    return add({ScalarNode::Kind::kChoose, dtype, "", 0, 0, {value.node, a->node, b->node}});
  }
  const bool bit = value.kind == Value::Kind::kBool || (value.kind == Value::Kind::kInt && (value.integer | 1) == 1);
  const bool fits = dtype == BP_BOOL              ? bit
                    : has(BP_MASK_INTEGER, dtype) ? value.kind == Value::Kind::kInt
                                                  : value.is_number();
  if (!fits)
    return error(at, "found " + described(value) + " where " + wanted + " is expected; write a number of that dtype");
  if (is_complex(dtype)) return pair(at, *adopt(at, value, part_of(dtype)), number(0.0));
  return add({ScalarNode::Kind::kNumber, dtype, "", value.as_double(), value.integer, {}});
}

}  // namespace backplane::codegen
