// Pieces of PTX text. Views into the module's text, which outlives them.
#pragma once

#include <cctype>
#include <string_view>
#include <vector>

#include "program.hpp"

namespace emulator {

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// Split at `by` outside of brackets; pieces are trimmed.
inline std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> pieces;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c != by || depth != 0) continue;
    pieces.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  if (!trimmed(text.substr(begin)).empty()) pieces.push_back(trimmed(text.substr(begin)));
  return pieces;
}

// The first word, which is taken off the text.
inline std::string_view take_word(std::string_view& text) {
  text = trimmed(text);
  size_t end = 0;
  while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end]))) ++end;
  const std::string_view word = text.substr(0, end);
  text = trimmed(text.substr(end));
  return word;
}

Type type_named(std::string_view name);

// ".align 8 .b8 name[16] = {...}", ".u64 name": the declaration, without the words before it.
struct Declaration {
  std::string name;
  uint32_t item = 0;
  uint32_t bytes = 0;
  uint32_t align = 1;
  std::string_view values;  // of an initialiser, without braces
};
Declaration declaration(std::string_view text);

// An integer, or the bits of 0f... and 0d....
uint64_t number(std::string_view text);
bool is_number(std::string_view text);

}  // namespace emulator
