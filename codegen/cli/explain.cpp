// See explain.hpp.
#include "cli/explain.hpp"

#include <algorithm>
#include <cstdio>
#include <ostream>

#include "backplane/abi/vocabulary.h"
#include "emit/emit.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

std::string render_const(const Const& c) {
  switch (c.tag) {
    case BP_TAG_BOOL:
      return c.integer ? "true" : "false";
    case BP_TAG_INT:
      return c.large ? std::to_string(static_cast<uint64_t>(c.integer)) : std::to_string(c.integer);
    case BP_TAG_FLOAT: {
      char text[32];
      std::snprintf(text, sizeof text, "%.17g", c.number);
      return text;
    }
    case BP_TAG_DTYPE:
      return std::string(kDtypeNames[c.integer]);
    case BP_TAG_STRING:
      return "'" + c.text + "'";
    default:
      return "none";
  }
}

std::string inputs_of(const CompiledOp& op, const Node& node) {
  std::string text;
  for (const uint32_t input : node.inputs) text += (text.empty() ? "" : ", ") + render(op, input);
  return text;
}

const char* rule_name(uint16_t rule) {
  static constexpr const char* kNames[] = {"", "vjp", "jvp", "decompose", "batch", "put", "shape"};
  return kNames[rule];
}

std::string what_holds(const CompiledFormula& formula) {
  std::string text = formula.flags & BP_FORMULA_DERIVED ? "derived" : "stated";
  if (formula.flags & BP_FORMULA_ZERO) return text + ": zero";
  if (formula.flags & BP_FORMULA_REFUSED) return "refused: " + formula.text;
  if (formula.flags & BP_FORMULA_LOOP) return text + ": loop";
  if (formula.flags & BP_FORMULA_WIDE) text += ", half floats in float32";
  return text + (formula.text.empty() ? "" : ": " + formula.text);
}

// Is it differentiated, by that rule, through its decomposition?
bool follows_parts(const CompiledOp& op, uint16_t derivative) {
  const auto has = [&](uint16_t rule) {
    return std::any_of(op.formulas.begin(), op.formulas.end(), [&](const auto& f) { return f.rule == rule; });
  };
  return has(BP_RULE_DECOMPOSE) && !has(derivative);
}

}  // namespace

std::string render(const CompiledOp& op, uint32_t index) {
  const Node& node = op.program.nodes()[index];
  const auto& signature = op.entry->signature;
  const auto imm = static_cast<size_t>(node.imm);
  const auto arg = [&] { return signature.args[imm].name; };
  const auto result = [&](const std::string& word) {
    return signature.results.size() == 1 ? word : word + "." + signature.results[imm].name;
  };
  switch (node.kind) {
    case BP_NODE_CONST:
      return render_const(op.program.consts()[imm]);
    case BP_NODE_ARG:
      return arg();
    case BP_NODE_OUT:
      return result("out");
    case BP_NODE_COTANGENT:
      return result("g");
    case BP_NODE_TANGENT:
      return "t." + arg();
    case BP_NODE_NEEDS:
      return "needs." + arg();
    case BP_NODE_BATCHED:
      return "b." + arg();
    case BP_NODE_SHAPE:
      return inputs_of(op, node) + ".shape";
    case BP_NODE_NDIM:
      return inputs_of(op, node) + ".ndim";
    case BP_NODE_DTYPE:
      return inputs_of(op, node) + ".dtype";
    case BP_NODE_DEVICE:
      return inputs_of(op, node) + ".device";
    case BP_NODE_CALL:
    case BP_NODE_BUILTIN:
      return op.program.names()[imm] + "(" + inputs_of(op, node) + ")";
    case BP_NODE_SELECT:
      return inputs_of(op, node) + "[" + std::to_string(node.imm) + "]";
    case BP_NODE_IF:
      return "(" + render(op, node.inputs[1]) + " if " + render(op, node.inputs[0]) + " else " +
             render(op, node.inputs[2]) + ")";
    case BP_NODE_LIST:
      return "[" + inputs_of(op, node) + "]";
    case BP_NODE_MAP:
      return "map(#" + std::to_string(node.imm) + " in " + render(op, node.inputs[0]) + ": " +
             render(op, node.inputs[1]) + ")";
    case BP_NODE_FOLD:
      return "fold(#" + std::to_string(node.imm) + " = " + render(op, node.inputs[1]) + ", #" +
             std::to_string(node.imm + 1) + " in " + render(op, node.inputs[0]) + ": " + render(op, node.inputs[2]) +
             ")";
    case BP_NODE_VAR:
      return "#" + std::to_string(node.imm);
    default:
      return "FIT " + arg() + " (" + inputs_of(op, node) + ")";
  }
}

bool explain(const CompiledRegistry& registry, const std::string& name, std::ostream& out, std::ostream& errors) {
  std::vector<std::string_view> names;
  for (const CompiledOp& op : registry.ops) {
    names.push_back(op.entry->full_name);
    if (op.entry->full_name != name && op.entry->name() != name) continue;
    out << op.entry->full_name << op.entry->signature.text.value.substr(op.entry->name().size()) << "\n  "
        << op.entry->doc.value << "\n  " << op.entry->where.file << ':' << op.entry->where.line << '\n';
    const EmitContext context{registry, op.entry->ns, op.entry->ns, true};
    for (size_t i = 0; i < op.formulas.size(); ++i) {
      const CompiledFormula& formula = op.formulas[i];
      out << "  " << rule_name(formula.rule);
      for (const uint32_t target : formula.targets) out << ' ' << op.entry->signature.args[target].name;
      out << ": " << what_holds(formula) << (native_name(context, op, i).empty() ? "" : "  [native]") << '\n';
      for (const uint32_t root : formula.roots) out << "      " << render(op, root) << '\n';
    }
    if (follows_parts(op, BP_RULE_VJP)) out << "  vjp: decompose, through the formula above\n";
    if (follows_parts(op, BP_RULE_JVP)) out << "  jvp: decompose, through the formula above\n";
    return true;
  }
  errors << "backplane-codegen: error: no op '" << name << "'" << suggestion(name, names) << '\n';
  return false;
}

}  // namespace backplane::codegen
