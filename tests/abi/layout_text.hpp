// The text form of a layout, and the law that a later one is only an append to an earlier one.
//
// A line is FIXED(struct, size), OPEN(struct, size), MEMBER(struct, member, offset, size) or VALUE(constant, value):
// C macros, so that layout.c asserts them too.
#pragma once

#include <cstdint>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "abi/layout.h"

namespace backplane::abi_test {

struct Struct {
  bool fixed = false;
  uint64_t size = 0;
  std::vector<std::string> members;  // "name, offset, size", in order
};
struct Layout {
  std::map<std::string, Struct> structs;
  std::map<std::string, uint64_t> values;
};

inline std::string text_of(const bp_layout_row* rows, size_t count) {
  std::ostringstream text;
  for (const bp_layout_row* row = rows; row != rows + count; ++row) switch (row->kind) {
      case BP_LAYOUT_FIXED:
        text << "FIXED(" << row->owner << ", " << row->size << ")\n";
        break;
      case BP_LAYOUT_OPEN:
        text << "OPEN(" << row->owner << ", " << row->size << ")\n";
        break;
      case BP_LAYOUT_MEMBER:
        text << "MEMBER(" << row->owner << ", " << row->member << ", " << row->offset << ", " << row->size << ")\n";
        break;
      case BP_LAYOUT_VALUE:
        text << "VALUE(" << row->owner << ", " << row->offset << "u)\n";
        break;
    }
  return text.str();
}

inline Layout parse(const std::string& text) {
  Layout layout;
  static const std::regex line(R"((\w+)\((\w+), (.*)\))");
  std::istringstream in(text);
  for (std::string row; std::getline(in, row);) {
    std::smatch part;
    if (!std::regex_match(row, part, line)) continue;
    if (part[1] == "VALUE")
      layout.values[part[2]] = std::stoull(part[3]);
    else if (part[1] == "MEMBER")
      layout.structs[part[2]].members.push_back(part[3]);
    else
      layout.structs[part[2]] = {part[1] == "FIXED", std::stoull(part[3]), {}};
  }
  return layout;
}

// What keeps `now` from being an append to `before`: a sentence for each fault.
inline std::vector<std::string> faults(const Layout& before, const Layout& now) {
  std::vector<std::string> out;
  for (const auto& [name, old] : before.structs) {
    const auto found = now.structs.find(name);
    if (found == now.structs.end()) {
      out.push_back(name + " is gone");
      continue;
    }
    const Struct& current = found->second;
    if (old.fixed != current.fixed) out.push_back(name + " changed between FIXED and OPEN");
    if (current.size < old.size) out.push_back(name + " shrank");
    if (old.fixed && (current.size != old.size || current.members != old.members)) out.push_back(name + " is FIXED");
    for (size_t i = 0; i < old.members.size(); ++i)
      if (i >= current.members.size() || current.members[i] != old.members[i]) {
        out.push_back(name + ": member (" + old.members[i] + ") is gone or has moved");
        break;
      }
  }
  for (const auto& [name, value] : before.values) {
    const auto found = now.values.find(name);
    if (found == now.values.end())
      out.push_back(name + " is gone");
    else if (found->second != value)
      out.push_back(name + " has another value");
  }
  return out;
}

}  // namespace backplane::abi_test
