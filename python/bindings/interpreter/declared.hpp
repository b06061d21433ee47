// Documentation that opens with a declaration, types included, "Tensor.item(self, *position: int) -> Any", then "--" in
// a line of its own and the text. python/stubs reads it in the source; CPython, whose text signatures hold no types, is
// given the text without them: item($self, *position).
#pragma once

#include <cstddef>
#include <string_view>

namespace backplane::python {

template <size_t kSize>
struct Declared {
  char text[kSize]{};

  consteval Declared(const char (&declared)[kSize]) {
    const std::string_view all(declared, kSize - 1);
    const size_t open = all.find('('), docs = all.find("\n--\n");
    append(all.substr(0, open).substr(all.substr(0, open).rfind('.') + 1));  // without the type that owns it
    const size_t close = append_parameters(all, open);
    if (close > docs) throw "a declaration is followed by a line of --";
    append(all.substr(docs));
  }

 private:
  size_t size_ = 0;

  constexpr void append(std::string_view part) {
    for (const char c : part) text[size_++] = c;
  }

  // From the opening parenthesis to the closing one, whose position it returns. The text between a colon and the
  // default or the end of the parameter is a type.
  constexpr size_t append_parameters(std::string_view all, size_t open) {
    int depth = 0;
    bool in_type = false;
    for (size_t i = open;; ++i) {
      const char c = all.at(i);
      depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
      if (depth == 0 || (depth == 1 && (c == ',' || c == '='))) in_type = false;
      if (depth == 1 && c == ':') in_type = true;
      const bool around_default = c == ' ' && (all[i + 1] == '=' || all[i - 1] == '=');
      if (!in_type && !around_default) append(all.substr(i, 1));
      if (i == open && all.substr(i + 1, 4) == "self") append("$");
      if (depth == 0) return i;
    }
  }
};

}  // namespace backplane::python
