#include "graph/text/argument_parser.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "backplane/device.hpp"
#include "graph/sizes.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core::graph {
namespace {

bp_dtype find_dtype(std::string_view name) {
  for (bp_dtype d = 0; d < BP_DTYPE_COUNT; ++d)
    if (name == kDtypeNames[d]) return d;
  return BP_DTYPE_NONE;
}

constexpr int kMaxFactors = 8;   // of a product of symbols
constexpr int kMaxNesting = 16;  // of parentheses in a size

}  // namespace

SymbolId ArgumentParser::symbol() {
  const Token token = lexer_.expect(Token::Kind::kName, "the name of a symbol");
  const std::span<const std::string> names = graph_.symbol_names();
  const auto at = std::find(names.begin(), names.end(), token.text);
  if (at == names.end()) lexer_.fail(token, "found no symbol \"", token.text, "\"");
  return static_cast<SymbolId>(at - names.begin());
}

// "(SIZE//NUMBER)", rounded down. The dividend has its own parentheses unless it is a name.
Dim ArgumentParser::parenthesised(bool& is_quotient) {
  const Token open = lexer_.expect("(");
  if (++depth_ > kMaxNesting) lexer_.fail(open, "parentheses more than ", kMaxNesting, " deep");
  Dim inner = dim();
  is_quotient = lexer_.accept("//");
  if (is_quotient) {
    const Token at = lexer_.peek();
    const int64_t divisor = lexer_.expect_int("the divisor of the size");
    if (divisor <= 0) lexer_.fail(at, "a size is divided by a number from 1 up, found ", divisor);
    inner = graph_.quotient(inner, divisor);
  }
  lexer_.expect(")");
  --depth_;
  return inner;
}

Dim ArgumentParser::term() {
  Dim product = 1;
  if (lexer_.peek().kind == Token::Kind::kInt) {
    product = lexer_.expect_int("a size");
    if (!lexer_.accept("*")) return product;
  }
  int degree = 0;
  do {
    const Token at = lexer_.peek();
    if (++degree > kMaxFactors) lexer_.fail(at, "a product of more than ", kMaxFactors, " symbols");
    if (!lexer_.at("(")) {
      product = graph_.sizes.multiply(product, graph_.sizes.symbol(symbol()));
      continue;
    }
    bool is_quotient = false;
    const Dim inner = parenthesised(is_quotient);
    if (!is_quotient && (degree > 1 || product != Dim(1) || !lexer_.at("//")))
      lexer_.fail(at, "parentheses belong around a quotient, as (batch//2), and around its dividend");
    product = graph_.sizes.multiply(product, inner);
  } while (lexer_.accept("*"));
  return product;
}

Dim ArgumentParser::dim() {
  Dim sum = 0;
  int n_terms = 0;
  bool negative = lexer_.accept("-");
  do {
    if (++n_terms > 64) lexer_.fail(lexer_.peek(), "a size of more than 64 terms");
    sum = graph_.sizes.add(sum, term(), negative ? -1 : 1);
    negative = lexer_.at("-");
  } while (lexer_.accept("+") || lexer_.accept("-"));
  return sum;
}

std::vector<Dim> ArgumentParser::dims() {
  std::vector<Dim> dims;
  const Token open = lexer_.expect("[");
  while (!lexer_.accept("]")) {
    if (!dims.empty()) lexer_.expect(",");
    if (dims.size() == kMaxRank) lexer_.fail(open, "more than ", kMaxRank, " dimensions");
    dims.push_back(dim());
  }
  return dims;
}

ParsedType ArgumentParser::type() {
  ParsedType type;
  const Token name = lexer_.expect(Token::Kind::kName, "a dtype");
  type.dtype = find_dtype(name.text);
  if (type.dtype == BP_DTYPE_NONE) lexer_.fail(name, "found the unknown dtype ", name.text);
  type.dims = dims();
  type.device = device();
  return type;
}

bp_device ArgumentParser::device() {
  const Token at = lexer_.peek();
  const std::string name = lexer_.expect_string("a device in quotes");
  if (device_) return *device_;
  try {
    return parse_device(name);
  } catch (const Error& error) {
    lexer_.fail(at, error.what());
  }
}

ValueId ArgumentParser::value() {
  const Token token = lexer_.expect(Token::Kind::kValue, "a value, as in %3");
  uint64_t id = 0;
  const auto read = std::from_chars(token.text.data(), token.text.data() + token.text.size(), id);
  if (read.ec != std::errc() || id >= graph_.values().size())
    lexer_.fail(token, "uses %", token.text, ", which nothing before this makes");
  return static_cast<ValueId>(id);
}

double ArgumentParser::real() {
  const double sign = lexer_.accept("-") ? -1 : 1;
  if (lexer_.accept("inf")) return sign * std::numeric_limits<double>::infinity();
  if (lexer_.accept("nan")) return sign * std::numeric_limits<double>::quiet_NaN();
  const Token token = lexer_.peek();
  if (token.kind != Token::Kind::kInt) lexer_.expect(Token::Kind::kFloat, "a number");
  if (token.kind == Token::Kind::kInt) lexer_.take();
  double number = 0;
  const char* end = token.text.data() + token.text.size();
  const auto read = std::from_chars(token.text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) lexer_.fail(token, token.text, " is not a number");
  return sign * number;
}

// An int as it stands, or a float.
bp_value ArgumentParser::number() {
  const Token first = lexer_.peek();
  if (first.kind != Token::Kind::kInt && !lexer_.at("-")) return backplane::value(real());
  const bool negative = lexer_.accept("-");
  const Token token = lexer_.peek();
  if (token.kind != Token::Kind::kInt) return backplane::value((negative ? -1 : 1) * real());
  lexer_.take();
  const std::string digits = (negative ? "-" : "") + std::string(token.text);
  bp_value v = backplane::value(int64_t{0});
  if (std::from_chars(digits.data(), digits.data() + digits.size(), v.u.i).ec == std::errc()) return v;
  uint64_t large = 0;
  if (negative || std::from_chars(digits.data(), digits.data() + digits.size(), large).ec != std::errc())
    lexer_.fail(token, "the number ", digits, " does not fit 64 bits");
  v.u.i = static_cast<int64_t>(large);
  v.flags = BP_VALUE_UINT64;
  return v;
}

bp_value ArgumentParser::plain() {
  const Token token = lexer_.peek();
  if (token.kind == Token::Kind::kString) {
    text_ = lexer_.expect_string("a string");
    bp_value v{};
    v.tag = BP_TAG_STRING;
    v.count = static_cast<uint32_t>(text_.size());
    v.u.s = text_.c_str();
    return v;
  }
  if (token.kind != Token::Kind::kName || token.text == "inf" || token.text == "nan") return number();
  if (lexer_.accept("none")) return absent();
  if (lexer_.accept("true")) return backplane::value(true);
  if (lexer_.accept("false")) return backplane::value(false);
  if (const bp_dtype dtype = find_dtype(token.text); dtype != BP_DTYPE_NONE) {
    lexer_.take();
    return dtype_value(dtype);
  }
  if (lexer_.accept("beyond")) {
    lexer_.expect("(");
    bp_value v = backplane::value(real());
    v.tag = BP_TAG_INT;
    v.flags = BP_VALUE_BEYOND;
    lexer_.expect(")");
    return v;
  }
  if (lexer_.accept("complex")) {
    lexer_.expect("(");
    complex_[0] = real();
    lexer_.expect(",");
    complex_[1] = real();
    lexer_.expect(")");
    bp_value v{};
    v.tag = BP_TAG_COMPLEX;
    v.u.c = complex_;
    return v;
  }
  if (lexer_.accept("device")) {
    lexer_.expect("(");
    const bp_device named = device();
    lexer_.expect(")");
    return backplane::value(named);
  }
  lexer_.fail_expected("an argument");
}

Argument ArgumentParser::plain_list(uint16_t tag) {
  std::vector<double> floats;
  std::vector<uint8_t> bools;
  std::vector<bp_value> values;
  bool symbolic = false;
  lexer_.expect("[");
  for (bool first = true; !lexer_.accept("]"); first = false) {
    if (!first) lexer_.expect(",");
    if (tag == BP_TAG_FLOAT_LIST) {
      floats.push_back(real());
      continue;
    }
    const Token at = lexer_.peek();
    const Lexer before = lexer_;
    bp_value v{};
    const std::span<const std::string> names = graph_.symbol_names();
    bool size = lexer_.at("(") || std::find(names.begin(), names.end(), at.text) != names.end();
    if (!size) v = plain();
    size = size || (v.tag == BP_TAG_INT && follows_expression());
    if (size && tag == BP_TAG_VALUE_LIST) {
      lexer_ = before;
      v = Argument::of_size(dim()).plain;
      symbolic = symbolic || (v.flags & Argument::kSymbolic);
      v.flags = 0;
    }
    if (tag == BP_TAG_BOOL_LIST) {
      if (v.tag != BP_TAG_BOOL) lexer_.fail(at, "a list of bools holds true and false");
      bools.push_back(v.u.i != 0);
    } else {
      if (v.tag == BP_TAG_STRING || v.tag == BP_TAG_COMPLEX) lexer_.fail(at, "a list holds numbers, bools and none");
      values.push_back(v);
    }
  }
  bp_value v{};
  v.tag = tag;
  v.count = static_cast<uint32_t>(floats.size() + bools.size() + values.size());
  v.u.p = tag == BP_TAG_FLOAT_LIST  ? static_cast<const void*>(floats.data())
          : tag == BP_TAG_BOOL_LIST ? static_cast<const void*>(bools.data())
                                    : values.data();
  v.flags = symbolic ? Argument::kSymbolic : 0;
  return graph_.copy(v);
}

// Of values, or of sizes.
Argument ArgumentParser::list(const bp_arg_def& arg) {
  lexer_.expect("[");
  std::vector<ValueId> values;
  std::vector<int64_t> ints;
  std::vector<Dim> sizes;
  bool symbolic = false;
  for (bool first = true; !lexer_.accept("]"); first = false) {
    if (!first) lexer_.expect(",");
    if (arg.type == BP_TYPE_TENSOR) {
      values.push_back(lexer_.accept("none") ? kNone : value());
      continue;
    }
    // A number alone may be one that a Dim does not hold.
    const Lexer before = lexer_;
    if (lexer_.peek().kind == Token::Kind::kInt || lexer_.at("-")) {
      const bool product = lexer_.accept("-") && lexer_.peek().kind != Token::Kind::kInt;
      if (!product) {
        lexer_ = before;
        const int64_t number = lexer_.expect_int("a size");
        if (!follows_expression()) {
          ints.push_back(number);
          sizes.push_back(number);
          continue;
        }
      }
      lexer_ = before;
    }
    sizes.push_back(dim());
    ints.push_back(0);
    symbolic = symbolic || !sizes.back().is_number();
  }
  if (arg.type == BP_TYPE_TENSOR) return graph_.list(values);
  return symbolic ? graph_.sizes_of(sizes) : graph_.copy(backplane::value(Shape(ints)));
}

// What begins with a name.
Argument ArgumentParser::named(const bp_arg_def& arg) {
  const Token token = lexer_.peek();
  if (lexer_.accept("draw")) {
    lexer_.expect("(");
    const int64_t draw = lexer_.expect_int("the number of a draw");
    if (draw < 0 || static_cast<size_t>(draw) >= graph_.draws.size()) lexer_.fail(token, "found no draw ", draw);
    lexer_.expect(",");
    const Dim offset = dim();
    lexer_.expect(")");
    return Argument::of_draw(static_cast<uint32_t>(draw), offset);
  }
  if (lexer_.accept("graph")) {
    lexer_.expect("(");
    const int64_t inner = lexer_.expect_int("the number of a graph");
    if (inner < 0 || static_cast<size_t>(inner) >= graph_.graphs.size())
      lexer_.fail(token, "found no graph ", inner, " within this one");
    lexer_.expect(")");
    return Argument::of_graph(static_cast<uint32_t>(inner));
  }
  for (const auto& [word, tag] : {std::pair<const char*, uint16_t>{"floats", BP_TAG_FLOAT_LIST},
                                  {"bools", BP_TAG_BOOL_LIST},
                                  {"values", BP_TAG_VALUE_LIST}})
    if (lexer_.accept(word)) return plain_list(tag);
  if (lexer_.accept("float")) return float_of_size();
  const std::span<const std::string> names = graph_.symbol_names();
  const bool size = arg.type == BP_TYPE_TENSOR || arg.type == BP_TYPE_SCALAR ||
                    (arg.type >= BP_TYPE_AXIS && arg.type <= BP_TYPE_INDEX);
  if (size && std::find(names.begin(), names.end(), token.text) != names.end()) return Argument::of_size(dim());
  return graph_.copy(plain());
}

// A size, or its square root, "sqrt(SIZE)", as the floating number of the dividend and it.
Argument ArgumentParser::root_or_size(uint32_t dividend) {
  const Lexer before = lexer_;
  if (lexer_.accept("sqrt") && lexer_.accept("(")) {
    const Argument root = Argument::of_float(dim(), dividend | kRootOfSize);
    lexer_.expect(")");
    return root;
  }
  lexer_ = before;
  return Argument::of_float(dim(), dividend);
}

// The floating number of a size or of its square root, "float(SIZE)", or a whole number divided by it, "float(NUMBER /
// SIZE)".
Argument ArgumentParser::float_of_size() {
  lexer_.expect("(");
  const Lexer before = lexer_;
  if (lexer_.peek().kind == Token::Kind::kInt) {
    const Token at = lexer_.peek();
    const int64_t dividend = lexer_.expect_int("a number");
    if (lexer_.accept("/")) {
      if (dividend <= 0 || dividend >= kRootOfSize) lexer_.fail(at, "the dividend must be a number of 31 bits above 0");
      const Argument quotient = root_or_size(static_cast<uint32_t>(dividend));
      lexer_.expect(")");
      return quotient;
    }
    lexer_ = before;
  }
  const Argument whole = root_or_size(0);
  lexer_.expect(")");
  return whole;
}

namespace {

Argument with_number_flag(Argument argument, const bp_arg_def& arg) {
  const uint16_t tag = argument.plain.tag;
  if (arg.type == BP_TYPE_TENSOR && tag >= BP_TAG_BOOL && tag <= BP_TAG_COMPLEX)
    argument.plain.flags |= BP_VALUE_NUMBER;
  return argument;
}

}  // namespace

Argument ArgumentParser::argument(const bp_arg_def& arg) {
  const Token token = lexer_.peek();
  if (token.kind == Token::Kind::kValue) return Argument::of(value());
  if (lexer_.at("[")) return list(arg);
  if (token.kind == Token::Kind::kName) return with_number_flag(named(arg), arg);
  if (lexer_.at("(")) return with_number_flag(Argument::of_size(dim()), arg);
  const Lexer before = lexer_;
  bp_value v = plain();
  if (v.tag == BP_TAG_INT && follows_expression()) {
    lexer_ = before;
    return with_number_flag(Argument::of_size(dim()), arg);
  }
  return with_number_flag(graph_.copy(v), arg);
}

}  // namespace backplane::core::graph
