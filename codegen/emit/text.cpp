// Literals and names in generated files; see emit.hpp.
#include <cmath>
#include <cstdio>

#include "emit/emit.hpp"

namespace backplane::codegen {

std::string c_string(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (c == '?')
      result += "\\?";  // no trigraphs
    else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\%03o", static_cast<unsigned char>(c));
      result += escape;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string python_string(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\')
      result += std::string("\\") + c;
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else
      result += c;
  }
  return result + "'";
}

std::string comment(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool mark = !result.empty() && ((result.back() == '*' && c == '/') || (result.back() == '/' && c == '*'));
    const bool trigraph = c == '/' && result.ends_with("??");  // an end of line for old compilers
    if (mark || trigraph) result += ' ';
    result += c == '\n' || c == '\t' ? ' ' : c;
  }
  // A backslash at the end, also before spaces, would go on with the comment on the next line.
  const size_t last = result.find_last_not_of(' ');
  if (last != std::string::npos && result[last] == '\\') result += '.';
  return result;
}

// The most negative number is not a literal of C: its digits without the sign do not fit.
std::string c_int(int64_t value) { return value == INT64_MIN ? "INT64_MIN" : "INT64_C(" + std::to_string(value) + ")"; }

std::string c_double(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

std::string file_banner(const char* open, const std::string& what, const EmitContext& context, const char* close) {
  std::string sources;
  for (const auto& file : context.registry.files)
    if (!file->imported) sources += (sources.empty() ? "" : ", ") + file->documents.front()->name;
  return std::string(open) + what + " Made by backplane-codegen from " + comment(sources) + "; edit that instead." +
         close + "\n";
}

}  // namespace backplane::codegen
