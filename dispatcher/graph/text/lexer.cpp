#include "graph/text/lexer.hpp"

#include <charconv>
#include <cmath>

namespace backplane::core::graph {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

void Lexer::skip_space() {
  comment_ = {};
  const int32_t line = line_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      size_t end = text_.find('\n', at_);
      if (end == std::string_view::npos) end = text_.size();
      if (line_ == line && at_ > 0) comment_ = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end;
    } else if (is_space(c)) {
      ++at_;
      if (c == '\n') {
        ++line_;
        line_begin_ = at_;
      }
    } else {
      return;
    }
  }
}

Token::Kind Lexer::scan() {
  const char c = ahead();
  if (is_letter(c)) {
    while (is_letter(ahead()) || is_digit(ahead()) || ahead() == '.' || (ahead() == ':' && ahead(1) == ':'))
      at_ += ahead() == ':' ? 2 : 1;
    return Token::Kind::kName;
  }
  if (c == '%' && is_digit(ahead(1))) {
    for (++at_; is_digit(ahead());) ++at_;
    return Token::Kind::kValue;
  }
  if (is_digit(c)) {
    Token::Kind kind = Token::Kind::kInt;
    for (; is_letter(ahead()) || is_digit(ahead()) || ahead() == '.' ||
           ((ahead() == '-' || ahead() == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E'));
         ++at_)
      if (!is_digit(ahead())) kind = Token::Kind::kFloat;
    return kind;
  }
  if (c == '"') {
    for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_)
      if (text_[at_] == '\\') ++at_;
    if (ahead() != '"') fail(token_, "a string that does not end on its line");
    ++at_;
    return Token::Kind::kString;
  }
  ++at_;
  if (((c == '<' || c == '=' || c == '!') && ahead() == '=') || (c == '/' && ahead() == '/')) ++at_;
  return Token::Kind::kSign;
}

void Lexer::next() {
  skip_space();
  token_ = {Token::Kind::kEnd, {}, line_, static_cast<int32_t>(at_ - line_begin_) + 1};
  if (at_ >= text_.size()) return;
  const size_t begin = at_;
  token_.kind = scan();
  token_.text = text_.substr(begin, at_ - begin);
  if (token_.kind == Token::Kind::kValue) token_.text.remove_prefix(1);
}

Token Lexer::take() {
  Token taken = token_;
  next();
  return taken;
}

bool Lexer::accept(std::string_view text) {
  if (!at(text)) return false;
  next();
  return true;
}

Token Lexer::expect(std::string_view text) {
  if (!at(text)) fail_expected(("\"" + std::string(text) + "\"").c_str());
  return take();
}

Token Lexer::expect(Token::Kind kind, const char* what) {
  if (token_.kind != kind) fail_expected(what);
  return take();
}

int64_t Lexer::expect_int(const char* what) {
  const bool negative = accept("-");
  const Token token = expect(Token::Kind::kInt, what);
  const std::string text = (negative ? "-" : "") + std::string(token.text);
  int64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc())
    fail(token, "the number ", text, " does not fit 64 bits");
  return number;
}

std::string Lexer::expect_string(const char* what) {
  const Token token = expect(Token::Kind::kString, what);
  std::string plain;
  for (size_t i = 1; i + 1 < token.text.size(); ++i) {
    char c = token.text[i];
    if (c == '\\') {
      c = token.text[++i];
      if (c == 'n') c = '\n';
      if (c == 't') c = '\t';
      if (c == 'r') c = '\r';
      if (c == 'u') {  // of control characters alone
        int code = 0;
        for (int k = 0; k < 4; ++k) {
          const int digit = i + 1 < token.text.size() ? hex_digit(token.text[i + 1]) : -1;
          if (digit < 0) fail(token, "\\u takes four hexadecimal digits");
          code = code * 16 + digit;
          ++i;
        }
        if (code > 0x7f) fail(token, "\\u is for characters below 80 here; write others as they are");
        c = static_cast<char>(code);
      }
    }
    plain += c;
  }
  return plain;
}

void Lexer::fail_expected(const char* what) const {
  std::string found(token_.text.substr(0, 40));
  if (token_.kind == Token::Kind::kEnd) found = "the end of the text";
  if (token_.kind == Token::Kind::kValue) found = "%" + found;
  fail(token_, "found ", found, ", expected ", what);
}

std::string quoted(std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += "\\u00";
      result += kHex[static_cast<unsigned char>(c) >> 4];
      result += kHex[c & 15];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  std::string text(digits, end.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace backplane::core::graph
