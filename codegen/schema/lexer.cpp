// One lexer for signatures and formulas; see lexer.hpp.
#include "schema/lexer.hpp"

#include <algorithm>
#include <array>

namespace backplane::codegen {
namespace {

constexpr std::array<std::string_view, 9> kTwoCharacterSymbols = {"->", "//", "**", "==", "!=", "<=", ">=", "::", "[]"};
constexpr std::string_view kSymbols = "()[]{},.:;=+-*/%@<>?|";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

Token lex_number(std::string_view text, size_t at) {
  size_t end = at;
  bool is_float = false;
  const auto digits = [&] {
    while (end < text.size() && is_digit(text[end])) ++end;
  };
  digits();
  if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
    is_float = true;
    ++end;
    digits();
  } else if (end < text.size() && text[end] == '.' && (end + 1 == text.size() || !is_letter(text[end + 1]))) {
    is_float = true;
    ++end;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    size_t exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+')) ++exponent;
    if (exponent < text.size() && is_digit(text[exponent])) {
      is_float = true;
      end = exponent;
      digits();
    }
  }
  return {is_float ? Token::Kind::kFloat : Token::Kind::kInt, text.substr(at, end - at), at};
}

}  // namespace

std::vector<Token> lex(const Text& source, Diagnostics& diagnostics) {
  const std::string_view text = source.value;
  std::vector<Token> tokens;
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (is_space(c)) {
      ++at;
    } else if (is_letter(c)) {
      size_t end = at;
      while (end < text.size() && (is_letter(text[end]) || is_digit(text[end]))) ++end;
      tokens.push_back({Token::Kind::kName, text.substr(at, end - at), at});
      at = end;
    } else if (is_digit(c) || (c == '.' && at + 1 < text.size() && is_digit(text[at + 1]))) {
      tokens.push_back(lex_number(text, at));
      at += tokens.back().text.size();
    } else if (c == '\'' || c == '"') {
      const size_t end = text.find(c, at + 1);
      if (end == std::string_view::npos) {
        diagnostics.error(source.location(at), "this quoted text does not end; close it with " + std::string(1, c));
        at = text.size();
      } else {
        tokens.push_back({Token::Kind::kString, text.substr(at + 1, end - at - 1), at});
        at = end + 1;
      }
    } else {
      const std::string_view two = text.substr(at, 2);
      if (std::find(kTwoCharacterSymbols.begin(), kTwoCharacterSymbols.end(), two) != kTwoCharacterSymbols.end()) {
        tokens.push_back({Token::Kind::kSymbol, two, at});
        at += 2;
      } else {
        if (kSymbols.find(c) == std::string_view::npos)
          diagnostics.error(source.location(at), foreign_operator(text.substr(at, 1)).empty()
                                                     ? "unexpected character '" + std::string(1, c) + "'; remove it"
                                                     : std::string(foreign_operator(text.substr(at, 1))));
        else
          tokens.push_back({Token::Kind::kSymbol, text.substr(at, 1), at});
        ++at;
      }
    }
  }
  tokens.push_back({Token::Kind::kEnd, {}, text.size()});
  return tokens;
}

bool TokenStream::accept(std::string_view symbol) {
  if (!peek().is(symbol)) return false;
  take();
  return true;
}

bool TokenStream::accept_word(std::string_view word) {
  if (!peek().is_word(word)) return false;
  take();
  return true;
}

bool TokenStream::expect(std::string_view symbol, std::string_view purpose) {
  if (accept(symbol)) return true;
  error(peek(), "found " + quoted(peek()) + "; expected '" + std::string(symbol) + "' " + std::string(purpose));
  return false;
}

// Only the first slip of a text is reported: what follows it is mostly its echo.
void TokenStream::error(const Token& at, const std::string& message) {
  if (!failed_) diagnostics_.error(text_.location(at.offset), message);
  failed_ = true;
}

std::string_view foreign_operator(std::string_view symbol) {
  if (symbol == "^")
    return "'^' is not an operator; write x ** y for a power, logical_xor(x, y) or bitwise_xor(x, y) of Tensors";
  if (symbol == "&")
    return "'&' is not an operator; write 'and' between bools, logical_and(x, y) or bitwise_and(x, y) of Tensors";
  if (symbol == "|")
    return "'|' is not an operator; write 'or' between bools, logical_or(x, y) or bitwise_or(x, y) of Tensors";
  if (symbol == "~" || symbol == "!")
    return "'~' and '!' are no operators; write 'not' of a bool, logical_not(x) or bitwise_invert(x) of a Tensor";
  if (symbol == "is") return "'is' is not an operator; write present(x) for 'x is not none', or compare by ==";
  if (symbol == "in") return "'in' is not an operator; write a == 1 or a == 2";
  return {};
}

std::string quoted(const Token& token) {
  return token.kind == Token::Kind::kEnd ? "the end" : "'" + std::string(token.text) + "'";
}

}  // namespace backplane::codegen
