// Batch rules of one entry: as stated, or by its shape's word, which the record then says.
#include "backplane/abi/vocabulary.h"
#include "check/op_compiler.hpp"

namespace backplane::codegen {
namespace {

// As the core sees it when the record is registered.
bool batch_follows(const Entry& entry, const CompiledOp& op) {
  std::vector<bp_arg_def> args;
  for (const Arg& arg : entry.signature.args) args.push_back({nullptr, arg.type, arg.flags, 0, {}});
  std::vector<bp_shape_rule> shapes;
  for (const CompiledShape& shape : op.shapes)
    shapes.push_back({shape.name.c_str(), shape.args.data(), static_cast<uint32_t>(shape.args.size()), 0, nullptr});
  bp_op_def def{};
  def.family = entry.family.empty() ? nullptr : entry.family.value.c_str();
  def.flags = op.flags;
  def.args = {args.data(), static_cast<uint32_t>(args.size()), sizeof(bp_arg_def)};
  def.shapes = {shapes.data(), static_cast<uint32_t>(shapes.size()), sizeof(bp_shape_rule)};
  return bp_batch_follows(&def) != 0;
}

}  // namespace

// Else another mistake has been reported, and what follows from the shape is not worth a word.
bool OpCompiler::shape_is_sound() const {
  const bool view = entry_.view || entry_.maybe_view;
  if (entry_.family.empty() && !view && !entry_.host) return false;  // lacks its decomposition
  for (const CompiledShape& shape : op_.shapes)
    if (shape.name == "damaged" || view != (shape.name.substr(0, 5) == "view.")) return false;
  return !op_.shapes.empty();
}

// False where the entry states none.
bool OpCompiler::stated_batch() {
  if (!entry_.batch) return false;
  const Rule& rule = *entry_.batch;
  if (rule.kind == Rule::Kind::kDamaged) return true;
  CompiledFormula result = formula(BP_RULE_BATCH, rule);
  if (rule.kind == Rule::Kind::kLoop) {
    result.flags = BP_FORMULA_LOOP;
  } else if (rule.kind == Rule::Kind::kRefused) {
    result.flags = BP_FORMULA_REFUSED;
  } else {
    FormulaCompiler expression = compiler(rule.text, *rule.expr, BP_RULE_BATCH);
    const auto& results = entry_.signature.results;
    const std::vector<Value> values = expression.compile_several(*rule.expr, results.size(), "results");
    for (size_t i = 0; i < values.size(); ++i)
      result.roots.push_back(root(expression, *rule.expr, values[i], results[i].is_list, false));
  }
  op_.formulas.push_back(std::move(result));
  return true;
}

void OpCompiler::compile_batch() {
  if (stated_batch() || entry_.composite || entry_.is_higher_order() || (op_.flags & BP_OP_CREATION)) return;
  CompiledFormula result;
  result.rule = BP_RULE_BATCH;
  result.line = entry_.where.line;
  result.flags = BP_FORMULA_DERIVED;
  if (op_.flags & BP_OP_DYNAMIC) {
    result.flags |= BP_FORMULA_REFUSED;
    result.text = "the result's shape depends on values";
  } else if (batch_follows(entry_, op_)) {
    result.text = "by the shape class " + op_.shapes[0].name;
  } else {
    if (!entry_.decompose && shape_is_sound())
      error(entry_.where, "no batch rule follows for '" + entry_.name() + "' from its shape, " + op_.shapes[0].name +
                              ", and it has no decomposition; write 'batch' as a formula, loop or {none: REASON}");
    return;
  }
  op_.formulas.push_back(std::move(result));
}

}  // namespace backplane::codegen
