// The form of the rules that codegen makes of `rewrites` (ops/rewrites.yaml): patterns as flat nodes, which name each
// other, and the names of a rule, by index. Constant data.
#pragma once

#include <cstdint>

namespace backplane::core::graph {

// What conditions ask and functions make of the arguments that names stand for: rewrite_words.hpp.
enum class RewriteWord : uint16_t {
  kInteger,
  kFloating,
  kReal,
  kSigned,
  kSameDtype,
  kExact,
  kInOrder,
  kPowerOfTwo,
  kComposed,
  kReciprocal
};

struct PatternNode {
  enum Kind : uint8_t { kName, kNumber, kDtype, kCall, kFunction };
  static constexpr uint16_t kDefault = 0xffff;  // among inputs: the op's default stands there
  Kind kind;
  uint8_t n_inputs;
  uint16_t first_input;
  uint16_t index;  // of a name within its rule; a dtype; a RewriteWord
  double number;
  const char* op;  // of a call: "namespace::name"; its inputs are as many as the op has arguments
};

struct RewriteRule {
  const char* text;
  uint16_t from, to;  // pattern nodes
  uint16_t first_condition, n_conditions;
  uint16_t n_names;
};
inline constexpr int kMostNames = 8;  // of a rule; codegen refuses more

}  // namespace backplane::core::graph
