// Batch rules of one entry: as stated, or whether one follows from the shape's word. The core decides again from the
// record (dispatcher/batch/batch_rules.cpp); a test of the core holds the two together over the whole registry.
#include <algorithm>

#include "check/op_compiler.hpp"

namespace backplane::codegen {
namespace {

// What the signature holds beside its tensors.
struct Shapely {
  explicit Shapely(const Entry& entry) {
    for (const Arg& arg : entry.signature.args) {
      const bool list = arg.has(BP_ARG_LIST);
      if (arg.is_tensor()) {
        ++tensors;
        lists = lists || list;
      } else if (arg.type == BP_TYPE_AXIS || arg.type == BP_TYPE_AXES) {
        axes = true;
        may_flatten = may_flatten || (arg.type == BP_TYPE_AXIS && !list && arg.has(BP_ARG_OPTIONAL));
      } else {
        per_axis = per_axis || list || arg.type == BP_TYPE_SHAPE || arg.type == BP_TYPE_GRAPH;
      }
    }
  }
  size_t tensors = 0;
  bool lists = false;
  bool axes = false;
  bool may_flatten = false;  // an `Axis?`: absent, it is not all axes
  bool per_axis = false;     // an argument with an entry per axis
};

bool stated_param(const Entry& entry, const CompiledShape& shape, size_t i, bool may_be_absent) {
  return i < shape.args.size() && shape.args[i] != BP_NO_ARG &&
         (may_be_absent || !entry.signature.args[shape.args[i]].has(BP_ARG_OPTIONAL));
}

bool view_follows(const Entry& entry, const CompiledShape& shape) {
  const std::string_view word = std::string_view(shape.name).substr(5);
  if (word == "real" || word == "imag") return true;
  if (word == "diagonal") return stated_param(entry, shape, 2, false) && stated_param(entry, shape, 3, false);
  return stated_param(entry, shape, 1, word == "expand" || word == "permute" || word == "reshape" || word == "squeeze");
}

bool joins_axes(const Entry& entry, const CompiledShape& shape) {
  if (!stated_param(entry, shape, 1, true)) return false;
  const uint16_t type = entry.signature.args[shape.args[1]].type;
  return type == BP_TYPE_AXIS || type == BP_TYPE_AXES;
}

// Does the shape's word say all that batching needs?
bool batch_follows(const Entry& entry, const CompiledOp& op) {
  if (op.shapes.empty() || (op.flags & BP_OP_RANDOM)) return false;
  const CompiledShape& shape = op.shapes[0];
  for (const CompiledShape& other : op.shapes)
    if (other.name != shape.name || other.args != shape.args) return false;
  const Shapely s(entry);
  const std::string_view word = shape.name;
  if (word.substr(0, 5) == "view.")
    return s.tensors == 1 && !s.lists && op.shapes.size() == 1 && (op.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) &&
           view_follows(entry, shape);
  if (s.per_axis) return false;
  if (word == "broadcast") return !s.lists && !s.axes && s.tensors == shape.args.size();
  if (word == "matmul") return s.tensors == 2 && !s.lists && !s.axes;
  if (s.tensors != 1) return false;
  if (word == "reduce") return !s.lists && joins_axes(entry, shape);
  if (word == "same") return !s.lists && (s.axes ? !s.may_flatten : entry.family.value == "unary");
  return (word == "concat" || word == "stack") && s.lists && joins_axes(entry, shape);
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
