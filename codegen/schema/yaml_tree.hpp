// A registry file as a bounded tree of marked nodes, built from yaml-cpp's events.
//
// Refused before anything is expanded: files over 4 MiB, nesting over 64, aliases that expand to more than a million
// nodes or contain themselves, and keys that stand twice in one map. A YamlTree owns its nodes; aliases share them.
#pragma once

#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "schema/source.hpp"

namespace backplane::codegen {

inline constexpr size_t kMaxFileBytes = size_t{4} << 20;
inline constexpr size_t kMaxDepth = 64;
inline constexpr uint64_t kMaxExpandedNodes = 1'000'000;

struct YamlNode {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  bool quoted = false;  // or a block scalar: never a number or `true`
  Text text;            // of a scalar; for the others only its place
  std::vector<const YamlNode*> items;
  std::vector<std::pair<const YamlNode*, const YamlNode*>> entries;

  bool is(Kind k) const { return kind == k; }
  Location location() const { return text.source->location(text.begin); }
  const YamlNode* find(std::string_view key) const;
};

struct YamlTree {
  std::deque<YamlNode> nodes;
  const YamlNode* root = nullptr;
};

// nullptr with the mistakes in `diagnostics`.
std::unique_ptr<YamlTree> parse_yaml(const Source& source, Diagnostics& diagnostics);

}  // namespace backplane::codegen
