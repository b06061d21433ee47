// What the contract's headers declare, as text: types and parameters, which offsets and sizes alone do not show.
#pragma once

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace backplane::abi_test {

struct Declared {
  std::vector<std::string> members;      // each on one line, in order
  std::vector<size_t> offsets, lengths;  // of the members in the text without comments
};

// Blanks in the place of comments and of the preprocessor's lines, so that places in the one are places in the other.
inline std::string without_comments(std::string text) {
  const auto blank = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < std::min(end, text.size()); ++i)
      if (text[i] != '\n') text[i] = ' ';
  };
  for (size_t at = 0; (at = text.find("/*", at)) != std::string::npos;) blank(at, text.find("*/", at) + 2);
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    if (text[at] == '#') {
      while (end < text.size() && text[end - 1] == '\\') end = std::min(text.find('\n', end + 1), text.size());
      blank(at, end);
    }
    at = end + 1;
  }
  return text;
}

inline std::string on_one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

// The structs bp_... of a header.
inline std::map<std::string, Declared> declared(const std::string& header) {
  static const std::regex opening(R"(struct (bp_\w+) \{)");
  const std::string text = without_comments(header);
  std::map<std::string, Declared> structs;
  for (std::sregex_iterator found(text.begin(), text.end(), opening), end; found != end; ++found) {
    Declared& type = structs[(*found)[1]];
    size_t begin = static_cast<size_t>(found->position() + found->length());
    for (size_t at = begin, depth = 1; at < text.size(); ++at) {
      if (text[at] == '{') ++depth;
      if (text[at] == '}' && --depth == 0) break;
      if (text[at] != ';' || depth != 1) continue;
      while (text[begin] == ' ' || text[begin] == '\n') ++begin;
      type.members.push_back(on_one_line(text.substr(begin, at - begin)));
      type.offsets.push_back(begin);
      type.lengths.push_back(at + 1 - begin);
      begin = at + 1;
    }
  }
  return structs;
}

// "bp_host: uint32_t abi_major", a line per member.
inline std::string text_of(const std::map<std::string, Declared>& structs) {
  std::string text;
  for (const auto& [name, type] : structs)
    for (const std::string& member : type.members) text += name + ": " + member + "\n";
  return text;
}

// What keeps the lines of `now` from being appends to those of `before`.
inline std::vector<std::string> changed_lines(const std::string& before, const std::string& now) {
  const auto by_struct = [](const std::string& text) {
    std::map<std::string, std::vector<std::string>> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines[line.substr(0, line.find(':'))].push_back(line);
    return lines;
  };
  auto later = by_struct(now);
  std::vector<std::string> changed;
  for (const auto& [name, lines] : by_struct(before))
    for (size_t i = 0; i < lines.size(); ++i)
      if (i >= later[name].size() || later[name][i] != lines[i]) changed.push_back(lines[i]);
  return changed;
}

}  // namespace backplane::abi_test
