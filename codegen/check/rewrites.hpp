// The rules of graphs, compiled to patterns: names become numbers, arguments stand where the op has them.
//
// Checked: ops and their arguments; that `to` uses nothing that `from` does not bind; that rules come to an end, as
// each leaves fewer calls, or as many of ops that lead back to none.
#pragma once

#include <string>
#include <vector>

#include "check/registry.hpp"

namespace backplane::codegen {

struct PatternNode {
  enum class Kind : uint8_t { kName, kNumber, kDtype, kCall, kFunction };
  Kind kind = Kind::kName;
  uint32_t index = 0;  // of a name; a dtype
  double number = 0;
  std::string op;                // of a call: its full name; of a function or condition: its word
  std::vector<uint32_t> inputs;  // nodes; of a call as many as the op has arguments, kDefault for those left out
  static constexpr uint32_t kDefault = 0xffff;
};

struct CompiledRewrite {
  const Rewrite* stated = nullptr;
  std::string_view file;
  std::vector<std::string> names;
  std::vector<PatternNode> nodes;
  uint32_t from = 0, to = 0;
  std::vector<uint32_t> when;
};

// Of the files that are emitted.
std::vector<CompiledRewrite> compile_rewrites(const std::vector<std::unique_ptr<RegistryFile>>& files,
                                              const Registry& registry, Diagnostics& diagnostics);

}  // namespace backplane::codegen
