// Binds a record's formulas to the ops that they call, and checks what only the callees' signatures show.
//
// Runs once per record, under the registry's lock. Reads callees through `caller.record`.
#include "registry/op_link.hpp"

#include <string>

#include "record/caller.hpp"
#include "record/op_record.hpp"

namespace backplane::core {
namespace {

uint32_t resolve(const OpRecord& record, const char* name, uint32_t (*find)(std::string_view)) {
  const uint32_t op = find(name);
  BP_CHECK(op != BP_NO_OP, NOT_IMPLEMENTED, record.name, ": a formula calls '", name,
           "', which is not a registered op and not a builtin. Fix: load the plugin that provides it");
  return op;
}

// A call with several results may only be selected from, or be the root of a formula that gives a tuple.
void check_tuple(const OpRecord& record, uint32_t call, const OpRecord& callee) {
  const bp_program& program = *record.def.program;
  const auto require = [&](bool condition) {
    BP_CHECK(condition, VALUE, record.name, ": a formula uses the ", callee.results.size(), " results of ", callee.name,
             " as one value; select one of them");
  };
  for (uint32_t i = call + 1; i < program.n_nodes; ++i) {
    const bp_node& node = program.nodes[i];
    for (uint32_t k = 0; k < node.n_inputs; ++k)
      require(program.inputs[node.first_input + k] != call || node.kind == BP_NODE_SELECT);
  }
  for (const bp_formula& formula : record.formulas)
    for (uint32_t r = 0; r < formula.n_roots; ++r)
      require(formula.roots[r] != call || (formula.flags & BP_FORMULA_TUPLE));
}

void check_calls(const OpRecord& record, const std::vector<uint32_t>& calls) {
  const bp_program& program = *record.def.program;
  for (uint32_t i = 0; i < program.n_nodes; ++i) {
    const bp_node& node = program.nodes[i];
    if (node.kind != BP_NODE_CALL) continue;
    const OpRecord* callee = caller.record(calls[static_cast<size_t>(node.imm)]);
    if (!callee) continue;  // withdrawn: calling it says so
    BP_CHECK(node.n_inputs >= callee->n_required && node.n_inputs <= callee->args.size(), VALUE, record.name,
             ": a formula calls ", callee->name, " with ", node.n_inputs, " arguments; it takes ", callee->n_required,
             " to ", callee->args.size());
    if (callee->results.size() > 1) check_tuple(record, i, *callee);
  }
}

}  // namespace

void link(OpRecord& record, uint32_t (*find)(std::string_view)) {
  if (record.linked.load(std::memory_order_acquire)) return;
  const bp_program& program = *record.def.program;
  std::vector<uint32_t> calls(program.n_names, BP_NO_OP);
  for (uint32_t i = 0; i < program.n_nodes; ++i) {
    const bp_node& node = program.nodes[i];
    if (node.kind != BP_NODE_CALL) continue;
    uint32_t& op = calls[static_cast<size_t>(node.imm)];
    if (op == BP_NO_OP) op = resolve(record, program.names[node.imm], find);
  }
  // A name that no node calls and that is not a builtin is for native formulas, which reach ops only through `calls`.
  for (uint32_t i = 0; i < program.n_names; ++i)
    if (calls[i] == BP_NO_OP && !record.builtins[i]) calls[i] = find(program.names[i]);
  check_calls(record, calls);
  bool fits = false;
  for (uint32_t i = 0; i < program.n_nodes; ++i) fits = fits || program.nodes[i].kind == BP_NODE_FIT;
  for (int i = 0; fits && i < 3; ++i) record.fit_ops[i] = resolve(record, record.def.fit_names[i], find);
  record.calls = std::move(calls);
  record.linked.store(true, std::memory_order_release);
}

}  // namespace backplane::core
