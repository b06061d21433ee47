// Texts of entries in Markdown; see markdown.hpp.
#include "emit/markdown.hpp"

#include <algorithm>

#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

// Between more backticks than stand together in the text.
std::string fence(const std::string& text, size_t least) {
  size_t run = 0, longest = 0;
  for (const char c : text) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  return std::string(std::max(least, longest + 1), '`');
}

}  // namespace

std::string dtype_names(bp_dtype_mask mask) {
  for (const DtypeClass& c : dtype_classes())
    if (c.mask == mask) return std::string(c.name);
  std::string text;
  for (int d = 0; d < BP_DTYPE_COUNT; ++d)
    if (mask & BP_DTYPE_BIT(d)) text += (text.empty() ? "" : ", ") + std::string(kDtypeNames[d]);
  return text;
}

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

std::string prose(const std::string& text) {
  std::string escaped;
  bool in_code = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool link = text[i] == '(' && i > 0 && text[i - 1] == ']';
    if (text[i] == '`') in_code = !in_code;
    if (!in_code && (text[i] == '*' || link)) escaped += '\\';
    escaped += text[i];
  }
  return escaped;
}

std::string code(const std::string& text) {
  const std::string mark = fence(text, 1);
  const std::string space = mark.size() > 1 ? " " : "";
  return mark + space + cell(text) + space + mark;
}

std::string block(const std::string& text, const char* language) {
  const std::string mark = fence(text, 3);
  return mark + language + "\n" + text + (!text.empty() && text.back() == '\n' ? "" : "\n") + mark + "\n";
}

}  // namespace backplane::codegen
