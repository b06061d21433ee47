// The spellings of entries, compiled: calls of other ops as nodes over the parameters of a spelling.
//
// Checked: ops and their arguments exist, types fit, every parameter is used, no two words or signatures are the same.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "check/registry.hpp"

namespace backplane::codegen {

struct SpellingNode {
  enum class Kind : uint8_t { kParameter, kLiteral, kCall };
  Kind kind = Kind::kParameter;
  uint32_t parameter = 0;
  Literal literal;
  const Entry* op = nullptr;                          // of a call
  std::vector<std::pair<uint32_t, uint32_t>> inputs;  // of a call: an argument of the op, and a node before this one
};

struct CompiledSpelling {
  const Entry* entry = nullptr;
  const OpSpelling* stated = nullptr;
  std::vector<SpellingNode> nodes;  // empty: a word; else the last one is the call
};

// Of the files that are emitted, in their order.
std::vector<CompiledSpelling> compile_spellings(const std::vector<std::unique_ptr<RegistryFile>>& files,
                                                const Registry& registry, Diagnostics& diagnostics);

}  // namespace backplane::codegen
