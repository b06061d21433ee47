// Reads the cells of the coverage table out of op records. A composite or an op with a decomposition has whatever its
// parts have.
#include "cli/coverage.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace backplane::cli {
namespace {

// Steps by the writer's stride, as the contract asks of readers.
template <class T>
const T& element(const bp_array& array, uint32_t i) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(array.data) + uint64_t{i} * array.stride);
}

std::vector<const bp_formula*> formulas_of(const bp_op_def& op, uint16_t rule) {
  std::vector<const bp_formula*> out;
  for (uint32_t i = 0; i < op.formulas.count; ++i)
    if (const auto& formula = element<bp_formula>(op.formulas, i); formula.rule == rule) out.push_back(&formula);
  return out;
}

// The ops that the nodes of a formula may call.
std::set<std::string> ops_named(const bp_op_def& op, const bp_formula& formula) {
  std::set<std::string> names;
  std::vector<uint32_t> todo(formula.roots, formula.roots + formula.n_roots);
  std::set<uint32_t> seen;
  while (!todo.empty()) {
    const uint32_t at = todo.back();
    todo.pop_back();
    if (!seen.insert(at).second) continue;
    const bp_node& node = op.program->nodes[at];
    if (node.kind == BP_NODE_CALL) names.insert(op.program->names[node.imm]);
    for (uint16_t i = 0; i < node.n_inputs; ++i) todo.push_back(op.program->inputs[node.first_input + i]);
  }
  return names;
}

bool nothing_to_differentiate(const bp_op_def& op) {
  bool any = false;
  for (uint32_t i = 0; i < op.results.count; ++i)
    any = any || !(element<bp_result_def>(op.results, i).flags & BP_RESULT_NONDIFF);
  return !any || (op.flags & BP_OP_CREATION);
}

// Have all parts of the decomposition the rule? The registry's decompositions form no cycle.
template <class HasRule>
Cell by_parts(const bp_op_def& op, const bp_formula& decomposition, HasRule cell_of) {
  Cell worst = Cell::kExecuted;
  for (const std::string& name : ops_named(op, decomposition)) {
    const OpHandle part = find_op(name);
    const Cell cell = part == BP_NO_OP ? Cell::kMissing : cell_of(op_def(part));
    if (cell != Cell::kExempted && static_cast<int>(cell) > static_cast<int>(worst)) worst = cell;
  }
  return worst;
}

// One or more formulas that may each be refused: the op has the rule where any argument has it.
Cell stated(const std::vector<const bp_formula*>& formulas, Cell when_present) {
  for (const bp_formula* formula : formulas)
    if (!(formula->flags & BP_FORMULA_REFUSED)) return when_present;
  return Cell::kRefused;
}

Cell differentiable(const bp_op_def& op, uint16_t rule, Cell when_present) {
  if (op.flags & BP_OP_HIGHER_ORDER) return when_present;  // its function brings the rules
  if (nothing_to_differentiate(op)) return Cell::kExempted;
  if (const auto formulas = formulas_of(op, rule); !formulas.empty()) return stated(formulas, when_present);
  const auto decompositions = formulas_of(op, BP_RULE_DECOMPOSE);
  if (decompositions.empty()) return Cell::kMissing;
  const Cell parts =
      by_parts(op, *decompositions[0], [&](const bp_op_def& part) { return differentiable(part, rule, when_present); });
  return parts == Cell::kExecuted ? when_present : parts;
}

Cell vjp(const bp_op_def& op) { return differentiable(op, BP_RULE_VJP, Cell::kExecuted); }

// Backward formulas are calls: they can be differentiated again where each op that they call can.
Cell second_order(const bp_op_def& op) {
  const Cell first = vjp(op);
  if (first != Cell::kExecuted || (op.flags & BP_OP_HIGHER_ORDER)) return first;
  Cell worst = Cell::kExecuted;
  const auto merge = [&](Cell cell) {
    if (cell != Cell::kExempted && static_cast<int>(cell) > static_cast<int>(worst)) worst = cell;
  };
  for (const bp_formula* formula : formulas_of(op, BP_RULE_VJP)) merge(by_parts(op, *formula, vjp));
  if (formulas_of(op, BP_RULE_VJP).empty()) merge(by_parts(op, *formulas_of(op, BP_RULE_DECOMPOSE)[0], second_order));
  return worst;
}

Cell batch(const bp_op_def& op) {
  if (op.flags & BP_OP_HIGHER_ORDER) return Cell::kExecuted;
  const std::string_view rule = batch_rule(find_op(op.name));
  if (rule == "creation") return Cell::kExempted;
  if (rule == "loop") return Cell::kLoop;
  if (rule == "refused") return Cell::kRefused;
  if (rule == "missing") return Cell::kMissing;
  return rule == "decomposition" ? by_parts(op, *formulas_of(op, BP_RULE_DECOMPOSE)[0], batch) : Cell::kExecuted;
}

Cell meta(const bp_op_def& op) { return op.flags & BP_OP_DYNAMIC ? Cell::kExempted : Cell::kExecuted; }

// A trace writes an op down by its rules of dtype and shape; a composite, and one with a list among its results, by its
// parts. A result whose shape depends on values is refused. The functions of control flow are traced before it is
// called.
Cell trace(const bp_op_def& op) {
  if (op.flags & BP_OP_HIGHER_ORDER) return Cell::kExecuted;
  bool by_its_parts = (op.flags & BP_OP_COMPOSITE) != 0;
  for (uint32_t i = 0; i < op.results.count; ++i)
    by_its_parts = by_its_parts || (element<bp_result_def>(op.results, i).flags & BP_ARG_LIST);
  if (!by_its_parts) return op.flags & BP_OP_DYNAMIC ? Cell::kRefused : Cell::kExecuted;
  const auto decompositions = formulas_of(op, BP_RULE_DECOMPOSE);
  return decompositions.empty() ? Cell::kMissing : by_parts(op, *decompositions[0], trace);
}

}  // namespace

Cell rule_cell(const bp_op_def& op, size_t rule) {
  switch (rule) {
    case 0:
      return vjp(op);
    case 1:
      return differentiable(op, BP_RULE_JVP, Cell::kExecuted);
    case 2:
      return second_order(op);
    case 3:
      return batch(op);
    case 4:
      return meta(op);
    default:
      return trace(op);
  }
}

}  // namespace backplane::cli
