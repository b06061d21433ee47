// Which formulas run in float32 on half floats: those that would round more than once between their inputs and a
// result.
//
// A formula that calls one op which rounds is right as it is, because that op rounds once. Views, ops that move
// elements, those whose results are compared exactly, and those tagged exact:real do not round; a cast to another dtype
// than a half float ends the count.
#include <algorithm>
#include <vector>

#include "backplane/abi/vocabulary.h"
#include "check/op_compiler.hpp"

namespace backplane::codegen {
namespace {

constexpr bp_dtype_mask kHalf = BP_DTYPE_BIT(BP_FLOAT16) | BP_DTYPE_BIT(BP_BFLOAT16);

bool computes_halves(const Entry& entry) {
  if (entry.dtypes.flags & BP_DTYPE_TO_FLOATING) return true;
  for (size_t i = 0; i < entry.dtypes.accepts.size(); ++i)
    if (entry.signature.args[i].is_tensor() && (entry.dtypes.accepts[i] & kHalf)) return true;
  return false;
}

bool has_tag(const Entry& entry, std::string_view word) {
  return std::any_of(entry.tags.begin(), entry.tags.end(), [&](const Text& tag) { return tag.value == word; });
}

// How often a value was rounded to a half float on the way from the formula's inputs; kNever: it cannot be one.
constexpr int kNever = -1, kMany = 1000;

class Roundings {
 public:
  Roundings(const Registry& registry, const CompiledOp& op) : registry_(registry), op_(op) {
    for (uint32_t i = 0; i < op.program.nodes().size(); ++i) counts_.push_back(count(i));
  }
  int of(uint32_t node) const { return counts_[node]; }

 private:
  int most(const Node& node, size_t first = 0) const {
    int found = kNever;
    for (size_t k = first; k < node.inputs.size(); ++k) found = std::max(found, counts_[node.inputs[k]]);
    return found;
  }

  int count(uint32_t index) const {
    const Node& node = op_.program.nodes()[index];
    switch (node.kind) {
      case BP_NODE_ARG: {
        const auto arg = static_cast<size_t>(node.imm);
        return op_.entry->signature.args[arg].is_tensor() && (accepts(arg) & kHalf) ? 0 : kNever;
      }
      case BP_NODE_OUT:
      case BP_NODE_COTANGENT:
      case BP_NODE_TANGENT:
      case BP_NODE_VAR:
        return 0;
      case BP_NODE_CALL:
        return call(node);
      case BP_NODE_SELECT:
      case BP_NODE_FIT:
      case BP_NODE_LIST:
      case BP_NODE_BUILTIN:
        return most(node);
      case BP_NODE_IF:
        return most(node, 1);
      case BP_NODE_MAP:
        return join(counts_[node.inputs[0]], counts_[node.inputs[1]]);
      case BP_NODE_FOLD:  // a body that rounds does so again in the next round
        return join(join(counts_[node.inputs[0]], counts_[node.inputs[1]]),
                    counts_[node.inputs[2]] > 0 ? kMany : counts_[node.inputs[2]]);
      default:
        return kNever;
    }
  }
  static int join(int a, int b) { return a == kNever || b == kNever ? std::max(a, b) : a + b; }

  bp_dtype_mask accepts(size_t arg) const { return op_.entry->dtypes.accepts[arg]; }

  int call(const Node& node) const {
    const Entry* callee = registry_.find_full(op_.program.names()[static_cast<size_t>(node.imm)]);
    const int before = most(node);
    if (!callee || before == kNever) return callee ? kNever : kMany;
    if (has_tag(*callee, "role:cast")) return casts_to_half(node) ? before : kNever;
    if (!gives_halves(*callee)) return kNever;
    const bool exact = callee->view || callee->maybe_view || callee->moves || callee->compare.value == "exact" ||
                       has_tag(*callee, "exact:real");
    return before + (exact ? 0 : 1);
  }
  bool casts_to_half(const Node& node) const {
    for (const uint32_t input : node.inputs) {
      const Node& from = op_.program.nodes()[input];
      if (from.kind != BP_NODE_CONST) continue;
      const Const& value = op_.program.consts()[static_cast<size_t>(from.imm)];
      if (value.tag == BP_TAG_DTYPE) return (BP_DTYPE_BIT(value.integer) & kHalf) != 0;
    }
    return true;
  }
  static bool gives_halves(const Entry& callee) {
    return std::any_of(callee.dtypes.results.begin(), callee.dtypes.results.end(), [](const bp_result_dtype& d) {
      return d.kind != BP_RESULT_DTYPE_FIXED || (BP_DTYPE_BIT(d.param) & kHalf);
    });
  }

  const Registry& registry_;
  const CompiledOp& op_;
  std::vector<int> counts_;
};

}  // namespace

void OpCompiler::widen_formulas() {
  const HalfCompute half = entry_.dtypes.half;
  if (half == HalfCompute::kOwn || !computes_halves(entry_)) return;
  if (half == HalfCompute::kDerived && entry_.compare.value == "exact") return;
  const Roundings roundings(registry_, op_);
  for (CompiledFormula& formula : op_.formulas) {
    if (formula.rule != BP_RULE_VJP && formula.rule != BP_RULE_JVP && formula.rule != BP_RULE_DECOMPOSE) continue;
    int most = kNever;
    for (const uint32_t root : formula.roots) most = std::max(most, roundings.of(root));
    if (most >= (half == HalfCompute::kAccumulate ? 1 : 2)) formula.flags |= BP_FORMULA_WIDE;
  }
}

}  // namespace backplane::codegen
