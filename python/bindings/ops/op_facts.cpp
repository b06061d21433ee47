// A record as dicts and lists. Needs the interpreter lock.
#include "bindings/ops/op_facts.hpp"

#include "backplane/op.hpp"
#include "bindings/ops/op_type.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

template <class T>
const T& row(const bp_array& array, uint32_t index) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(array.data) + size_t{index} * array.stride);
}

const char* rule_name(uint16_t rule) {
  static const char* const kNames[] = {"", "vjp", "jvp", "decompose", "batch", "put", "shape"};
  return rule < std::size(kNames) ? kNames[rule] : "";
}

const char* state_of(const bp_formula& formula) {
  if (formula.flags & BP_FORMULA_REFUSED) return "refused";
  if (formula.flags & BP_FORMULA_ZERO) return "zero";
  if (formula.flags & BP_FORMULA_LOOP) return "loop";
  return formula.flags & BP_FORMULA_DERIVED ? "derived" : "stated";
}

py::list arguments(const bp_op_def& def) {
  py::list rows;
  for (uint32_t i = 0; i < def.args.count; ++i) {
    const auto& arg = row<bp_arg_def>(def.args, i);
    py::dict facts;
    facts["name"] = arg.name;
    facts["keyword_only"] = (arg.flags & BP_ARG_KEYWORD_ONLY) != 0;
    facts["generator"] = arg.type == BP_TYPE_GENERATOR;
    facts["accepts"] = arg.type == BP_TYPE_TENSOR && def.accepts ? def.accepts[i] : 0;
    rows.append(facts);
  }
  return rows;
}

py::list rules(const bp_op_def& def) {
  py::list rows;
  for (uint32_t i = 0; i < def.formulas.count; ++i) {
    const auto& formula = row<bp_formula>(def.formulas, i);
    py::list targets;
    for (uint32_t k = 0; k < formula.n_targets; ++k) targets.append(formula.targets[k]);
    py::dict facts;
    facts["rule"] = rule_name(formula.rule);
    facts["state"] = state_of(formula);
    facts["targets"] = targets;
    facts["text"] = formula.text ? formula.text : "";
    rows.append(facts);
  }
  return rows;
}

py::dict facts_of(const py::object& op) {
  const OpHandle handle = op_handle_of(op.ptr());
  BP_CHECK(handle != BP_NO_OP, TYPE, "op_facts: found a value of type ", Py_TYPE(op.ptr())->tp_name,
           ", expected an Op");
  const bp_op_def& def = op_def(handle);
  const bool view = (def.flags & BP_OP_VIEW) != 0;
  const bool aliases = view || (def.flags & BP_OP_MAYBE_VIEW);
  py::list results;
  for (uint32_t j = 0; j < def.results.count; ++j) {
    const auto& result = row<bp_result_def>(def.results, j);
    py::dict facts;
    facts["name"] = result.name;
    facts["list"] = (result.flags & BP_ARG_LIST) != 0;
    facts["nondiff"] = (result.flags & BP_RESULT_NONDIFF) != 0;
    results.append(facts);
  }
  py::dict facts;
  facts["args"] = arguments(def);
  facts["results"] = results;
  facts["rules"] = rules(def);
  facts["flags"] = def.flags;
  facts["tags"] = def.tags ? def.tags : "";
  facts["view"] = view;
  facts["dynamic"] = (def.flags & BP_OP_DYNAMIC) != 0;
  facts["alias"] = aliases ? py::object(py::str(row<bp_arg_def>(def.args, def.alias).name)) : py::none();
  return facts;
}

}  // namespace

void bind_op_facts(py::module_& module) {
  module.def("op_facts", &facts_of, py::arg("op"),
             "What the op's record declares: args and results, rules with their state, flags, tags, the argument that "
             "it aliases.");
}

}  // namespace backplane::python
