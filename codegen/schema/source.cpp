// Positions, the ordered list of mistakes, and nearest-name suggestions; see source.hpp.
#include "schema/source.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace backplane::codegen {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Levenshtein distance with swaps of neighbours, since swapped letters are the commonest slip.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

Source::Source(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {
  line_starts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
}

Location Source::location(size_t offset) const {
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const size_t line = static_cast<size_t>(next - line_starts_.begin());
  return {path_, static_cast<uint32_t>(line), static_cast<uint32_t>(offset - line_starts_[line - 1] + 1)};
}

size_t Source::offset(size_t line, size_t column) const {
  if (line >= line_starts_.size()) return text_.size();
  return std::min(line_starts_[line] + column, text_.size());
}

// YAML changes only white space and escapes between the file and the value, so the n-th visible character of the
// value is the n-th visible character of the file.
Location Text::location(size_t at) const {
  if (!source) return {};
  const std::string& text = source->text();
  size_t pos = begin;
  char quote = 0;
  if (pos < text.size() && (text[pos] == '\'' || text[pos] == '"')) {
    quote = text[pos++];
  } else if (pos < text.size() && (text[pos] == '|' || text[pos] == '>')) {
    while (pos < text.size() && text[pos] != '\n') ++pos;
  }
  size_t visible = 0;
  for (size_t i = 0; i < at && i < value.size(); ++i) visible += !is_space(value[i]);
  const bool at_end = at >= value.size();
  while (pos < text.size()) {
    if (is_space(text[pos])) {
      ++pos;
      continue;
    }
    if (visible == 0) break;
    --visible;
    const bool escape = (quote == '\'' && text.compare(pos, 2, "''") == 0) || (quote == '"' && text[pos] == '\\');
    pos += escape ? 2 : 1;
    if (visible == 0 && at_end) break;
  }
  return source->location(pos);
}

void Diagnostics::error(const Location& where, std::string message) { all_.push_back({where, std::move(message)}); }

void Diagnostics::warning(const Location& where, std::string message) {
  warnings_.push_back({where, std::move(message)});
}

namespace {
std::vector<Diagnostic> in_order(std::vector<Diagnostic> result) {
  const auto key = [](const Diagnostic& d) { return std::tie(d.where.file, d.where.line, d.where.column, d.message); };
  std::stable_sort(result.begin(), result.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  result.erase(
      std::unique(result.begin(), result.end(), [&](const auto& a, const auto& b) { return key(a) == key(b); }),
      result.end());
  return result;
}

std::string rendered(const std::vector<Diagnostic>& all, const char* kind) {
  std::string text;
  for (const Diagnostic& d : all) {
    text += d.where.file;
    text += ':' + std::to_string(d.where.line) + ':' + std::to_string(d.where.column);
    text += std::string(": ") + kind + ": " + d.message + '\n';
  }
  return text;
}
}  // namespace

std::vector<Diagnostic> Diagnostics::sorted() const { return in_order(all_); }
std::string Diagnostics::render() const { return rendered(sorted(), "error"); }
std::string Diagnostics::render_warnings() const { return rendered(in_order(warnings_), "warning"); }

std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string_view* best = nullptr;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string_view& candidate : candidates) {
    if (candidate.size() > word.size() + best_distance || word.size() > candidate.size() + best_distance) continue;
    const size_t d = distance(word, candidate);
    if (d < best_distance) {
      best = &candidate;
      best_distance = d;
    }
  }
  return best ? "; did you mean '" + std::string(*best) + "'?" : "";
}

size_t first_hidden(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
    if (length == 0 || first > 0xf4 || length > text.size() - at) return at;
    uint32_t code = length == 1 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; ++i) {
      const auto next = static_cast<unsigned char>(text[at + i]);
      if ((next & 0xc0) != 0x80) return at;
      code = code << 6 | (next & 0x3fu);
    }
    constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return at;
    const bool control = code < 0x20 ? code != '\n' && code != '\t' && code != '\r' : code >= 0x7f && code < 0xa0;
    const bool direction = code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
                           (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
    if (control || (direction && !(code == 0xfeff && at == 0))) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string listed(const std::vector<std::string_view>& words) {
  return std::accumulate(words.begin(), words.end(), std::string(), [](std::string text, std::string_view word) {
    return text.empty() ? std::string(word) : text + ", " + std::string(word);
  });
}

std::string listed_choices(const std::vector<Text>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + words[i].value;
  return text;
}

}  // namespace backplane::codegen
