// Recursive descent over the grammar of formulas; see formula.hpp. Nesting is bounded, since the text is a stranger's.
#include "schema/formula.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <utility>

namespace backplane::codegen {
namespace {

constexpr int kMaxNesting = 200;         // of parentheses and the like; and of bindings in a row
constexpr uint16_t kMaxTreeDepth = 500;  // of the tree: chains such as a + b + c nest to the left
constexpr const char* kBeyond = "an int of a formula is from -2**63 to 2**64 - 1; write a float";

struct Operator {
  std::string_view symbol;
  const char* builtin;
};
constexpr Operator kCompare[] = {{"==", "eq"}, {"!=", "ne"}, {"<=", "le"}, {">=", "ge"}, {"<", "lt"}, {">", "gt"}};
constexpr Operator kPlus = {"+", "add"}, kTimes = {"*", "mul"};
constexpr Operator kSum[] = {kPlus, {"-", "sub"}};
constexpr Operator kProduct[] = {kTimes, {"//", "floordiv"}, {"/", "truediv"}, {"%", "mod"}, {"@", "matmul"}};
constexpr Operator kNegate = {"-", "neg"}, kPower = {"**", "pow"}, kNot = {"not", "not"}, kAnd = {"and", "and"},
                   kOr = {"or", "or"};

class Parser {
 public:
  Parser(const Text& text, Diagnostics& diagnostics) : tokens_(text, diagnostics) {}

  ExprPtr parse() {
    if (tokens_.at_end()) {
      tokens_.error(tokens_.peek(), "the formula is empty; write an expression");
      return nullptr;
    }
    ExprPtr result = formula();
    if (!tokens_.failed() && !tokens_.at_end())
      tokens_.error(tokens_.peek(), "found " + quoted(tokens_.peek()) +
                                        " after the end of the formula; remove it or join it with an operator");
    return tokens_.failed() ? nullptr : std::move(result);
  }

 private:
  static ExprPtr make(Expr::Kind kind, size_t offset, std::string_view name = {}) {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->offset = offset;
    expr->name = name;
    return expr;
  }

  static ExprPtr operation(Expr::Kind kind, size_t offset, const Operator& op) {
    ExprPtr expr = make(kind, offset, op.builtin);
    expr->symbol = op.symbol;
    return expr;
  }

  template <class... Children>
  ExprPtr with(ExprPtr expr, Children... children) {
    (adopt(*expr, std::move(children)), ...);
    return expr;
  }

  void adopt(Expr& parent, ExprPtr child) {
    if (child && child->depth >= parent.depth) parent.depth = static_cast<uint16_t>(child->depth + 1);
    if (parent.depth > kMaxTreeDepth)
      tokens_.error(tokens_.peek(), "the formula is a chain of more than 500 steps; use let, map or fold");
    parent.children.push_back(std::move(child));
  }

  ExprPtr fail(const std::string& message) {
    tokens_.error(tokens_.peek(), message);
    return make(Expr::Kind::kName, tokens_.peek().offset, "none");
  }

  std::string name(std::string_view purpose) {
    if (tokens_.peek().kind == Token::Kind::kName) return std::string(tokens_.take().text);
    fail("found " + quoted(tokens_.peek()) + "; expected a name " + std::string(purpose));
    return "";
  }

  ExprPtr formula() { return tokens_.accept_word("let") ? bindings() : conditional(); }

  // One per function that may enter itself before it returns.
  struct Level {
    explicit Level(Parser& parser) : parser(parser) { ++parser.nesting_; }
    ~Level() { --parser.nesting_; }
    bool too_deep() const { return parser.nesting_ > kMaxNesting; }
    Parser& parser;
  };
  ExprPtr refuse_depth() { return fail("the formula nests deeper than 200 levels; use let"); }

  // `a = EXPR; b = EXPR; EXPR`: one binding per name that is followed by a single '='.
  ExprPtr bindings() {
    ExprPtr first;
    Expr* last = nullptr;
    int count = 0;
    do {
      if (++count > kMaxNesting) return fail("more than 200 bindings in a row; split the op");
      const Token at = tokens_.peek();
      ExprPtr let = make(Expr::Kind::kLet, at.offset, name("after let"));
      tokens_.expect("=", "after the name of a let");
      adopt(*let, conditional());
      tokens_.expect(";", "after the value of a let");
      Expr* raw = let.get();
      (last ? last->children.emplace_back() : first) = std::move(let);
      last = raw;
      tokens_.accept_word("let");
    } while (!tokens_.failed() && tokens_.peek().kind == Token::Kind::kName && tokens_.peek(1).is("="));
    last->children.push_back(conditional());
    return first;
  }

  ExprPtr conditional() {
    const Level level(*this);
    if (level.too_deep()) return refuse_depth();
    ExprPtr value = disjunction();
    const Token at = tokens_.peek();
    if (!tokens_.accept_word("if")) return value;
    ExprPtr condition = disjunction();
    if (!tokens_.accept_word("else"))
      return fail("found " + quoted(tokens_.peek()) + "; expected 'else' after 'A if COND'");
    ExprPtr otherwise = conditional();
    return with(make(Expr::Kind::kIf, at.offset), std::move(condition), std::move(value), std::move(otherwise));
  }

  ExprPtr disjunction() {
    ExprPtr left = conjunction();
    while (!tokens_.failed() && tokens_.peek().is_word("or")) {
      const Token at = tokens_.take();
      left = with(operation(Expr::Kind::kBinary, at.offset, kOr), std::move(left), conjunction());
    }
    return left;
  }

  ExprPtr conjunction() {
    ExprPtr left = negation();
    while (!tokens_.failed() && tokens_.peek().is_word("and")) {
      const Token at = tokens_.take();
      left = with(operation(Expr::Kind::kBinary, at.offset, kAnd), std::move(left), negation());
    }
    return left;
  }

  ExprPtr negation() {
    if (!tokens_.peek().is_word("not")) return comparison();
    const Level level(*this);
    if (level.too_deep()) return refuse_depth();
    const Token at = tokens_.take();
    return with(operation(Expr::Kind::kUnary, at.offset, kNot), negation());
  }

  template <size_t N>
  const Operator* accept_operator(const Operator (&table)[N]) {
    for (const Operator& op : table)
      if (!tokens_.failed() && tokens_.accept(op.symbol)) return &op;
    return nullptr;
  }

  ExprPtr comparison() {
    ExprPtr left = sum();
    const size_t at = tokens_.peek().offset;
    if (const Operator* op = accept_operator(kCompare))
      left = with(operation(Expr::Kind::kBinary, at, *op), std::move(left), sum());
    if (const auto words = foreign_operator(tokens_.peek().text); !words.empty()) return fail(std::string(words));
    for (const Operator& op : kCompare)
      if (tokens_.peek().is(op.symbol))
        return fail("comparisons do not chain; write a < b and b < c of numbers, logical_and(a < b, b < c) of Tensors");
    return left;
  }

  ExprPtr sum() {
    ExprPtr left = product();
    for (size_t at = tokens_.peek().offset; const Operator* op = accept_operator(kSum); at = tokens_.peek().offset)
      left = with(operation(Expr::Kind::kBinary, at, *op), std::move(left), product());
    return left;
  }

  ExprPtr product() {
    ExprPtr left = unary();
    for (size_t at = tokens_.peek().offset; const Operator* op = accept_operator(kProduct); at = tokens_.peek().offset)
      left = with(operation(Expr::Kind::kBinary, at, *op), std::move(left), unary());
    return left;
  }

  ExprPtr unary() {
    const Token at = tokens_.peek();
    if (!tokens_.accept(kNegate.symbol)) return power();
    const Level level(*this);
    if (level.too_deep()) return refuse_depth();
    ExprPtr value = unary();
    if (value->kind == Expr::Kind::kInt || value->kind == Expr::Kind::kFloat) {
      if (value->large && value->integer != INT64_MIN) tokens_.error(at, kBeyond);
      value->large = value->integer == INT64_MIN && !value->large;
      value->integer = static_cast<int64_t>(0 - static_cast<uint64_t>(value->integer));
      value->number = -value->number;
      value->offset = at.offset;
      return value;
    }
    return with(operation(Expr::Kind::kUnary, at.offset, kNegate), std::move(value));
  }

  ExprPtr power() {
    ExprPtr base = postfix();
    const size_t at = tokens_.peek().offset;
    if (!tokens_.accept(kPower.symbol)) return base;
    const Level level(*this);
    if (level.too_deep()) return refuse_depth();
    return with(operation(Expr::Kind::kBinary, at, kPower), std::move(base), unary());
  }

  ExprPtr postfix() {
    ExprPtr value = primary();
    while (!tokens_.failed()) {
      const Token at = tokens_.peek();
      if (tokens_.accept(".")) {
        const Token member = tokens_.peek();
        value = with(make(Expr::Kind::kAttribute, member.offset, name("after '.'")), std::move(value));
      } else if (tokens_.accept("[")) {
        value = subscript(std::move(value), at.offset);
      } else {
        break;
      }
    }
    return value;
  }

  ExprPtr subscript(ExprPtr list, size_t offset) {
    ExprPtr begin, end;
    if (!tokens_.peek().is(":")) begin = conditional();
    const bool slice = tokens_.accept(":");
    if (slice && !tokens_.peek().is("]")) end = conditional();
    tokens_.expect("]", "to close '['");
    if (!slice) return with(make(Expr::Kind::kIndex, offset), std::move(list), std::move(begin));
    return with(make(Expr::Kind::kSlice, offset), std::move(list), std::move(begin), std::move(end));
  }

  ExprPtr primary() {
    const Token token = tokens_.peek();
    switch (token.kind) {
      case Token::Kind::kInt:
      case Token::Kind::kFloat:
        return number();
      case Token::Kind::kString:
        return text();
      case Token::Kind::kName:
        return name_or_call();
      default:
        break;
    }
    if (tokens_.accept("[]")) return make(Expr::Kind::kList, token.offset);
    if (tokens_.accept("[")) {
      ExprPtr list = make(Expr::Kind::kList, token.offset);
      while (!tokens_.failed() && !tokens_.peek().is("]")) {
        adopt(*list, conditional());
        if (!tokens_.accept(",")) break;
      }
      tokens_.expect("]", "to close '['");
      return list;
    }
    if (tokens_.accept("(")) {
      ExprPtr inner = formula();
      tokens_.expect(")", "to close '('");
      return inner;
    }
    return fail("found " + quoted(token) + "; expected a value");
  }

  // Texts side by side are one, so that a long one fits on lines.
  ExprPtr text() {
    ExprPtr value = make(Expr::Kind::kString, tokens_.peek().offset);
    while (tokens_.peek().kind == Token::Kind::kString) value->name += tokens_.take().text;
    return value;
  }

  ExprPtr number() {
    const Token token = tokens_.take();
    ExprPtr value =
        make(token.kind == Token::Kind::kInt ? Expr::Kind::kInt : Expr::Kind::kFloat, token.offset, token.text);
    value->number = std::strtod(value->name.c_str(), nullptr);
    if (token.kind == Token::Kind::kInt) {
      uint64_t whole = 0;
      if (std::from_chars(token.text.data(), token.text.data() + token.text.size(), whole).ec != std::errc())
        tokens_.error(token, kBeyond);
      value->integer = static_cast<int64_t>(whole);
      value->large = value->integer < 0;
    } else if (value->number > std::numeric_limits<double>::max()) {
      tokens_.error(token, "this number does not fit in 64 bits of floating point; write inf");
    }
    return value;
  }

  ExprPtr name_or_call() {
    const Token token = tokens_.take();
    if (token.text == "map" && tokens_.peek().is("(") && tokens_.peek(2).is_word("in")) return map(token);
    if (token.text == "fold" && tokens_.peek().is("(") && tokens_.peek(2).is("=")) return fold(token);
    // Overloads and namespaces are part of a callee's name, but of nothing else's.
    size_t ahead = 0;
    std::string callee(token.text);
    while ((tokens_.peek(ahead).is(".") || tokens_.peek(ahead).is("::")) &&
           tokens_.peek(ahead + 1).kind == Token::Kind::kName) {
      callee += std::string(tokens_.peek(ahead).text) + std::string(tokens_.peek(ahead + 1).text);
      ahead += 2;
    }
    if (!tokens_.peek(ahead).is("(")) return make(Expr::Kind::kName, token.offset, token.text);
    for (; ahead > 0; --ahead) tokens_.take();
    ExprPtr result = call(make(Expr::Kind::kCall, token.offset, callee));
    if (callee == "polynomial") return horner(std::move(result));
    return result;
  }

  ExprPtr call(ExprPtr result) {
    tokens_.expect("(", "after the name of an op");
    while (!tokens_.failed() && !tokens_.peek().is(")")) {
      if (tokens_.peek().kind == Token::Kind::kName && tokens_.peek(1).is("=")) {
        const Token keyword = tokens_.take();
        tokens_.take();
        ExprPtr value = conditional();
        result->depth = std::max(result->depth, static_cast<uint16_t>(value->depth + 1));
        result->keywords.push_back({std::string(keyword.text), keyword.offset, std::move(value)});
      } else {
        if (!result->keywords.empty()) return fail("a positional argument follows a keyword; put it first");
        adopt(*result, conditional());
      }
      if (!tokens_.accept(",")) break;
    }
    tokens_.expect(")", "to close the call of '" + result->name + "'");
    return result;
  }

  // polynomial(x, coefficients) is fold(sum = x * 0, c in coefficients: sum * x + c), x computed once. No formula can
  // write the names.
  ExprPtr horner(ExprPtr call) {
    if (call->children.size() != 2 || !call->keywords.empty())
      return fail("'polynomial' takes a value and a list of coefficients, the highest power first");
    const size_t at = call->offset;
    const auto named = [&](const char* word) { return make(Expr::Kind::kName, at, word); };
    const auto operate = [&](const Operator& op, ExprPtr left, ExprPtr right) {
      return with(operation(Expr::Kind::kBinary, at, op), std::move(left), std::move(right));
    };
    ExprPtr fold = make(Expr::Kind::kFold, at, "#sum");
    fold->element = "#coefficient";
    fold = with(std::move(fold), operate(kTimes, named("#x"), make(Expr::Kind::kInt, at, "0")),
                std::move(call->children[1]),
                operate(kPlus, operate(kTimes, named("#sum"), named("#x")), named("#coefficient")));
    return with(make(Expr::Kind::kLet, at, "#x"), std::move(call->children[0]), std::move(fold));
  }

  ExprPtr map(const Token& at) {
    tokens_.expect("(", "after map");
    ExprPtr result = make(Expr::Kind::kMap, at.offset, name("of the element"));
    tokens_.accept_word("in");
    ExprPtr list = conditional();
    tokens_.expect(":", "before the body of map");
    ExprPtr body = formula();
    tokens_.expect(")", "to close map");
    return with(std::move(result), std::move(list), std::move(body));
  }

  ExprPtr fold(const Token& at) {
    tokens_.expect("(", "after fold");
    ExprPtr result = make(Expr::Kind::kFold, at.offset, name("of the accumulator"));
    tokens_.expect("=", "after the accumulator");
    ExprPtr initial = conditional();
    tokens_.expect(",", "before the element of fold");
    result->element = name("of the element");
    if (!tokens_.accept_word("in"))
      return fail("found " + quoted(tokens_.peek()) + "; expected 'in' after the element of fold");
    ExprPtr list = conditional();
    tokens_.expect(":", "before the body of fold");
    ExprPtr body = formula();
    tokens_.expect(")", "to close fold");
    return with(std::move(result), std::move(initial), std::move(list), std::move(body));
  }

  TokenStream tokens_;
  int nesting_ = 0;
};

}  // namespace

ExprPtr parse_formula(const Text& text, Diagnostics& diagnostics) { return Parser(text, diagnostics).parse(); }

ExprPtr copy(const Expr& expr) {
  auto result = std::make_unique<Expr>();
  result->kind = expr.kind;
  result->offset = expr.offset;
  result->name = expr.name;
  result->element = expr.element;
  result->symbol = expr.symbol;
  result->number = expr.number;
  result->integer = expr.integer;
  result->large = expr.large;
  for (const ExprPtr& child : expr.children) result->children.push_back(child ? copy(*child) : nullptr);
  for (const Keyword& k : expr.keywords) result->keywords.push_back({k.name, k.offset, copy(*k.value)});
  return result;
}

}  // namespace backplane::codegen
