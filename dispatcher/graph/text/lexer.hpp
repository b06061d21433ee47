// Words of a graph's text, with where they stand.
//
// Names (also with `::` and `.`), `%7`, numbers, strings in quotes as JSON has them, and single signs. A comment runs
// from
// `#` to the end of its line. The text is borrowed. Faults are Error(BP_ERROR_VALUE) with line and column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backplane/error.hpp"

namespace backplane::core::graph {

struct Token {
  enum class Kind : uint8_t { kName, kValue, kInt, kFloat, kString, kSign, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;  // as it stands there; of a value without its %
  int32_t line = 1;
  int32_t column = 1;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { next(); }

  const Token& peek() const { return token_; }
  Token take();
  bool at(std::string_view text) const {  // a name or a sign
    return (token_.kind == Token::Kind::kName || token_.kind == Token::Kind::kSign) && token_.text == text;
  }
  bool accept(std::string_view text);
  Token expect(std::string_view text);
  Token expect(Token::Kind kind, const char* what);
  std::string expect_string(const char* what);
  int64_t expect_int(const char* what);
  // Of the comment between the last token taken and this one, where it is on that token's line.
  std::string_view comment() const { return comment_; }

  template <class... Parts>
  [[noreturn]] void fail(const Token& where, const Parts&... parts) const {
    detail::fail(BP_ERROR_VALUE, "graph text: line ", where.line, ", column ", where.column, ": ", parts...);
  }
  // "found X, expected `what`"
  [[noreturn]] void fail_expected(const char* what) const;

 private:
  void next();
  void skip_space();
  Token::Kind scan();
  char ahead(size_t n = 0) const { return at_ + n < text_.size() ? text_[at_ + n] : '\0'; }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_begin_ = 0;
  int32_t line_ = 1;
  std::string_view comment_;
  Token token_;
};

// A string in quotes, with what JSON escapes escaped; and back, of a string token.
std::string quoted(std::string_view text);
// The shortest text that reads back as the same double, with a point or an exponent; inf, -inf, nan.
std::string float_text(double number);

}  // namespace backplane::core::graph
