// What an op may find wrong in its data, and what a compiler may do with it: as the entry states it, or as it follows.
// See compiled.hpp.
#include "check/facts.hpp"

#include <algorithm>
#include <map>

#include "check/op_compiler.hpp"

namespace backplane::codegen {
namespace {

// A call in a decomposition. `allowed`: faults that its second argument, a number of the formula, does not have.
struct FormulaCall {
  CompiledOp* callee;
  uint64_t allowed;
};

uint64_t allowed_by(const Program& program, const Node& call) {
  if (call.inputs.size() < 2) return 0;
  const Node& second = program.nodes()[call.inputs[1]];
  if (second.kind != BP_NODE_CONST) return 0;
  const Const& value = program.consts()[static_cast<size_t>(second.imm)];
  const bool is_int = value.tag == BP_TAG_INT, is_float = value.tag == BP_TAG_FLOAT;
  if (!is_int && !is_float) return 0;
  const double number = is_int ? static_cast<double>(value.integer) : value.number;
  return (number != 0 ? uint64_t{BP_FAULT_DIVISION} : 0) |
         (number >= 0 || value.large ? uint64_t{BP_FAULT_EXPONENT} : 0);
}

}  // namespace

// Repeated until nothing is added: decompositions may come in any order.
void derive_faults(std::vector<CompiledOp>& ops, Diagnostics& diagnostics) {
  std::map<std::string_view, CompiledOp*> by_name;
  for (CompiledOp& op : ops) by_name[op.entry->full_name] = &op;
  std::vector<std::pair<CompiledOp*, std::vector<FormulaCall>>> derived;
  for (CompiledOp& op : ops) {
    op.faults = op.entry->faults.value_or(0);
    const CompiledFormula* formula = op.find(BP_RULE_DECOMPOSE);
    if (op.faults != 0 || !formula) continue;
    std::vector<FormulaCall>& calls = derived.emplace_back(&op, std::vector<FormulaCall>()).second;
    const std::vector<bool> used = op.program.reachable(formula->roots);
    for (size_t i = 0; i < used.size(); ++i) {
      const Node& node = op.program.nodes()[i];
      if (!used[i] || node.kind != BP_NODE_CALL) continue;
      const auto callee = by_name.find(op.program.names()[static_cast<size_t>(node.imm)]);
      if (callee != by_name.end()) calls.push_back({callee->second, allowed_by(op.program, node)});
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& [op, calls] : derived) {
      uint64_t faults = op->faults;
      for (const FormulaCall& call : calls) faults |= call.callee->faults & ~call.allowed & ~uint64_t{BP_FAULT_NONE};
      changed = changed || faults != op->faults;
      op->faults = faults;
    }
  }
  for (CompiledOp& op : ops) {
    if (op.faults == 0) op.faults = BP_FAULT_NONE;
    if (op.faults != BP_FAULT_NONE) continue;
    for (const Sample& sample : op.entry->samples)
      if (sample.error == "DataError")
        diagnostics.error(sample.where, "the sample raises DataError, but '" + op.entry->name() +
                                            "' has no faults; state them, as in faults: domain");
  }
}

// As the core verifies it (record/op_verify_rules.cpp).
void OpCompiler::check_region() {
  const auto& args = entry_.signature.args;
  const auto tensors = std::count_if(args.begin(), args.end(), [](const Arg& a) { return a.is_tensor(); });
  const auto is_first = [&](size_t i) { return i < args.size() && args[i].is_tensor() && !args[i].has(BP_ARG_LIST); };
  const bool one = tensors == 1 && is_first(0) && entry_.signature.results.size() == 1;
  const auto states = [&](std::string_view word) { return op_.shapes.size() == 1 && op_.shapes[0].name == word; };
  const auto require = [&](bool holds, const char* what) {
    if (!holds)
      error(entry_.region_text.location(), "'" + entry_.name() + "' has the region " + entry_.region_text.value +
                                               ", so it must " + what + "; change or remove 'region'");
  };
  switch (entry_.region) {
    case BP_REGION_CAST:
      return require(one && (op_.flags & BP_OP_ELEMENTWISE), "be elementwise, with one Tensor, the first argument");
    case BP_REGION_VIEW:
      return require(one && (op_.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)), "be a view of its first argument");
    case BP_REGION_ELEMENTWISE:
      return require((op_.flags & BP_OP_ELEMENTWISE) != 0, "be elementwise");
    case BP_REGION_REDUCE:
      return require(one && states("reduce") && op_.shapes[0].args.size() > 1 && op_.shapes[0].args[1] == 1,
                     "have the shape reduce(x, axes) of its first two arguments");
    case BP_REGION_PRODUCT:
      return require(tensors == 2 && is_first(0) && is_first(1) && states("matmul"),
                     "have the shape matmul(x, y) of its first two arguments");
    default:
      return;
  }
}

}  // namespace backplane::codegen
