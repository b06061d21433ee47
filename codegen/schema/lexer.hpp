// Words of signatures and formulas. Tokens point into the text that they were cut from.
#pragma once

#include <string_view>
#include <vector>

#include "schema/source.hpp"

namespace backplane::codegen {

struct Token {
  enum class Kind : uint8_t { kName, kInt, kFloat, kString, kSymbol, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;  // of a string: without its quotes
  size_t offset = 0;

  bool is(std::string_view symbol) const { return kind == Kind::kSymbol && text == symbol; }
  bool is_word(std::string_view word) const { return kind == Kind::kName && text == word; }
};

// The last token is kEnd. A character that no token starts with is reported and skipped.
std::vector<Token> lex(const Text& text, Diagnostics& diagnostics);

// A cursor with the two moves that recursive descent needs.
class TokenStream {
 public:
  TokenStream(const Text& text, Diagnostics& diagnostics)
      : text_(text), diagnostics_(diagnostics), tokens_(lex(text, diagnostics)) {}

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }
  Token take() {
    const Token token = peek();
    if (next_ + 1 < tokens_.size()) ++next_;
    return token;
  }
  bool accept(std::string_view symbol);
  bool accept_word(std::string_view word);
  // False, with an error, where another token stands.
  bool expect(std::string_view symbol, std::string_view purpose);
  bool at_end() const { return peek().kind == Token::Kind::kEnd; }
  void error(const Token& at, const std::string& message);
  bool failed() const { return failed_; }

 private:
  const Text& text_;
  Diagnostics& diagnostics_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  bool failed_ = false;
};

// How a token reads in an error: "'foo'" or "the end".
std::string quoted(const Token& token);
// The replacement for an operator of other languages; empty for other symbols.
std::string_view foreign_operator(std::string_view symbol);

}  // namespace backplane::codegen
