#include "graph/argument_parser.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "backplane/device.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core::graph {
namespace {

bp_dtype find_dtype(std::string_view name) {
  for (bp_dtype d = 0; d < BP_DTYPE_COUNT; ++d)
    if (name == kDtypeNames[d]) return d;
  return BP_DTYPE_NONE;
}

constexpr int kMaxDegree = 8;  // of a product of symbols

}  // namespace

SymbolId ArgumentParser::symbol() {
  const Token token = lexer_.expect(Token::Kind::kName, "the name of a symbol");
  const std::span<const std::string> names = graph_.symbol_names();
  const auto at = std::find(names.begin(), names.end(), token.text);
  if (at == names.end()) lexer_.fail(token, "there is no symbol \"", token.text, "\"");
  return static_cast<SymbolId>(at - names.begin());
}

DimTerm ArgumentParser::term() {
  DimTerm term{1, {}};
  if (lexer_.peek().kind == Token::Kind::kInt) {
    term.coefficient = lexer_.expect_int("a size");
    if (!lexer_.accept("*")) return term;
  }
  do {
    if (term.symbols.size() >= kMaxDegree)
      lexer_.fail(lexer_.peek(), "a product of more than ", kMaxDegree, " symbols");
    term.symbols.push_back(symbol());
  } while (lexer_.accept("*"));
  return term;
}

Dim ArgumentParser::dim() {
  DimTerms terms;
  bool negative = lexer_.accept("-");
  do {
    if (terms.size() >= 64) lexer_.fail(lexer_.peek(), "a size of more than 64 terms");
    terms.push_back(term());
    if (negative) terms.back().coefficient = -terms.back().coefficient;
    negative = lexer_.at("-");
  } while (lexer_.accept("+") || lexer_.accept("-"));
  return graph_.sizes.from(std::move(terms));
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
  if (type.dtype == BP_DTYPE_NONE) lexer_.fail(name, "there is no dtype ", name.text);
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
  if (read.ec != std::errc() || read.ptr != end) lexer_.fail(token, token.text, " is no number");
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
  lexer_.expect("[");
  for (bool first = true; !lexer_.accept("]"); first = false) {
    if (!first) lexer_.expect(",");
    if (tag == BP_TAG_FLOAT_LIST) {
      floats.push_back(real());
      continue;
    }
    const Token at = lexer_.peek();
    const bp_value v = plain();
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
    if (draw < 0 || static_cast<size_t>(draw) >= graph_.draws.size()) lexer_.fail(token, "there is no draw ", draw);
    lexer_.expect(",");
    const Dim offset = dim();
    lexer_.expect(")");
    return Argument::of_draw(static_cast<uint32_t>(draw), offset);
  }
  if (lexer_.accept("graph")) {
    lexer_.expect("(");
    const int64_t inner = lexer_.expect_int("the number of a graph");
    if (inner < 0 || static_cast<size_t>(inner) >= graph_.graphs.size())
      lexer_.fail(token, "there is no graph ", inner, " within this one");
    lexer_.expect(")");
    return Argument::of_graph(static_cast<uint32_t>(inner));
  }
  for (const auto& [word, tag] : {std::pair<const char*, uint16_t>{"floats", BP_TAG_FLOAT_LIST},
                                  {"bools", BP_TAG_BOOL_LIST},
                                  {"values", BP_TAG_VALUE_LIST}})
    if (lexer_.accept(word)) return plain_list(tag);
  const std::span<const std::string> names = graph_.symbol_names();
  const bool size = arg.type == BP_TYPE_SCALAR || (arg.type >= BP_TYPE_AXIS && arg.type <= BP_TYPE_INDEX);
  if (size && std::find(names.begin(), names.end(), token.text) != names.end()) return Argument::of_size(dim());
  return graph_.copy(plain());
}

Argument ArgumentParser::argument(const bp_arg_def& arg) {
  const Token token = lexer_.peek();
  if (token.kind == Token::Kind::kValue) return Argument::of(value());
  if (lexer_.at("[")) return list(arg);
  if (token.kind == Token::Kind::kName) return named(arg);
  const Lexer before = lexer_;
  bp_value v = plain();
  if (v.tag == BP_TAG_INT && follows_expression()) {
    lexer_ = before;
    return Argument::of_size(dim());
  }
  if (arg.type == BP_TYPE_TENSOR && v.tag >= BP_TAG_BOOL && v.tag <= BP_TAG_COMPLEX) v.flags |= BP_VALUE_NUMBER;
  return graph_.copy(v);
}

}  // namespace backplane::core::graph
