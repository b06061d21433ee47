// Places in registry files, and the mistakes found there.
//
// A Source owns the text of one file for the whole run; everything else points into it. A Text is a YAML scalar
// that remembers where each of its characters stood, so that an error inside a formula names its own column.
// Diagnostics collects every mistake of a run; nothing here throws or prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace backplane::codegen {

// Lines and columns count from 1, columns in bytes, as compilers do. Line 0: the whole file.
struct Location {
  std::string_view file;
  uint32_t line = 0;
  uint32_t column = 0;
};

class Source {
 public:
  Source(std::string path, std::string text);
  const std::string& path() const { return path_; }
  const std::string& text() const { return text_; }
  Location location(size_t offset) const;
  size_t offset(size_t line, size_t column) const;  // both from 0, as yaml-cpp counts

 private:
  std::string path_;
  std::string text_;
  std::vector<size_t> line_starts_;
};

struct Text {
  std::string value;
  const Source* source = nullptr;
  size_t begin = 0;  // offset in the source of the scalar's first byte, its quote or block indicator included

  bool empty() const { return value.empty(); }
  // Where `value[at]` stands in the file, through quotes, folding and indentation.
  Location location(size_t at = 0) const;
};

struct Diagnostic {
  Location where;
  std::string message;  // "what is wrong; what would be right"
};

class Diagnostics {
 public:
  void error(const Location& where, std::string message);
  void warning(const Location& where, std::string message);
  bool empty() const { return all_.empty(); }  // of mistakes; warnings do not count
  // Sorted by file, line and column; equal ones once.
  std::vector<Diagnostic> sorted() const;
  // "file:line:column: error: message" per line.
  std::string render() const;
  std::string render_warnings() const;

 private:
  std::vector<Diagnostic> all_, warnings_;
};

// "; did you mean 'broadcast'?" if a candidate is near enough, else "".
std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates);
// Where a text first has a byte that is not UTF-8, or a character that does not show: of control, of direction, or that
// ends lines in some languages only. npos: nowhere. Tabs and ends of lines are text.
size_t first_hidden(std::string_view text);
// "a, b, c"
std::string listed(const std::vector<std::string_view>& words);
// "a, b or c"
std::string listed_choices(const std::vector<Text>& words);

}  // namespace backplane::codegen
