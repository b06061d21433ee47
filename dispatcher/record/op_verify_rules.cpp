// What a copied record claims of its shape rules, formulas and nodes; see op_verify.cpp. Resolves shape words and
// builtins.
#include "record/op_verify_rules.hpp"

#include <algorithm>
#include <bit>

#include "backplane/abi/vocabulary.h"
#include "record/builtins.hpp"
#include "record/op_arena.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {
namespace {

bool is_view_word(const ShapeWord& word) { return word.name.starts_with("view."); }

void verify_word(const OpRecord& op, const bp_shape_rule& rule, const ShapeWord& word) {
  require(op, rule.n_args >= word.min_args && rule.n_args <= word.max_args, "the shape rule ", rule.name, " reads ",
          rule.n_args, " arguments; it takes ", int{word.min_args}, " to ", int{word.max_args});
  for (uint32_t i = 0; i < rule.n_args; ++i) {
    const char letter = word.params[std::min<size_t>(i, word.params.size() - 1)];
    const bool may_lack = letter >= 'A' && letter <= 'Z';
    const uint32_t arg = rule.args[i];
    if (arg == BP_NO_ARG) {
      require(op, may_lack, "the shape rule ", rule.name, " needs its argument ", i);
      continue;
    }
    require(op,
            arg < op.args.size() && bp_shape_param_fits(op.args[arg].type, op.args[arg].flags,
                                                        may_lack ? static_cast<char>(letter + ('a' - 'A')) : letter),
            "the shape rule ", rule.name, " cannot read argument ", arg, " in its place ", i);
  }
  const bool view = (op.def.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) != 0;
  if (is_view_word(word))
    require(op, view && op.def.alias == rule.args[0], "the shape rule ", rule.name,
            " makes a view, but the op does not say that it aliases that argument");
}

void verify_shape_rule(OpRecord& op, const bp_shape_rule& rule) {
  const std::string_view name = rule.name;
  const ShapeWord* word = nullptr;
  if (name == "dynamic") {
    require(op, (op.def.flags & BP_OP_DYNAMIC) != 0, "a dynamic shape rule on an op that is not flagged dynamic");
  } else if (name == "function") {
    require(op, rule.fn != nullptr, "the shape rule `function` has no function");
  } else if (name == "expr") {
    op.shape_formula = op.find_formula(BP_RULE_SHAPE);
    require(op, op.shape_formula != nullptr, "the shape rule `expr` needs a SHAPE formula");
  } else {
    word = find_shape_word(name);
    require(op, word != nullptr, "there is no shape rule '", name, "'");
    verify_word(op, rule, *word);
  }
  op.shape_words.push_back(word);
}

void verify_flags(const OpRecord& op) {
  const uint64_t flags = op.def.flags;
  const bool view = (flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) != 0;
  if (view) {
    require(op, is_type(op, op.def.alias, BP_TYPE_TENSOR) && !(op.args[op.def.alias].flags & BP_ARG_LIST),
            "a view's `alias` must be a tensor argument");
    require(op, op.results.size() == 1, "a view has one result");
    require(op, op.shape_words[0] && is_view_word(*op.shape_words[0]), "a view needs a view.* shape rule");
  }
  if (flags & (BP_OP_ELEMENTWISE | BP_OP_REDUCTION)) {
    const size_t operands = op.results.size() + static_cast<size_t>(std::popcount(op.tensor_args));
    require(op, op.simple_tensors && operands <= kMaxLoopOperands,
            "an elementwise op or reduction takes no tensor lists and at most ", kMaxLoopOperands, " operands");
    require(op, (flags & BP_OP_ELEMENTWISE) || op.tensor_args != 0, "a reduction needs a tensor");
  }
  require(op, !(flags & BP_OP_INPLACE) || op.tensor_args, "an in-place variant needs a tensor argument");
}

// The region that the record states. The regions of later minors are not read, so they are not checked.
void verify_region(const OpRecord& op) {
  const uint64_t flags = op.def.flags;
  const auto states = [&](std::string_view word) { return op.shape_words.size() == 1 && op.shapes[0].name == word; };
  const bool first = op.tensor_args == 1 && op.simple_tensors && op.results.size() == 1;
  require(op, op.def.join == BP_JOIN_NONE || op.def.region == BP_REGION_REDUCE, "it states what joins elements, ",
          op.def.join, ", but its region is not a reduction");
  switch (op.def.region) {
    case BP_REGION_CAST:
      return require(op, first && (flags & BP_OP_ELEMENTWISE), "a region `cast` reads one tensor, elementwise");
    case BP_REGION_VIEW:
      return require(op, first && (flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)),
                     "a region `view` is a view of the first argument");
    case BP_REGION_ELEMENTWISE:
      return require(op, (flags & BP_OP_ELEMENTWISE) != 0, "a region `elementwise` is an elementwise op");
    case BP_REGION_REDUCE:
      require(op, first && states("reduce") && op.shapes[0].n_args > 1 && op.shapes[0].args[1] == 1,
              "a region `reduce` has the shape reduce(x, axes) of its first two arguments");
      return require(op, op.def.join > BP_JOIN_NONE && op.def.join <= BP_JOIN_ALL,
                     "a region `reduce` says what joins elements; found ", op.def.join);
    case BP_REGION_PRODUCT:
      return require(op, op.tensor_args == 3 && op.simple_tensors && states("matmul"),
                     "a region `product` has the shape matmul of its first two arguments");
    default:
      return;
  }
}

void verify_native_only(const OpRecord& op, const bp_formula& formula) {
  require(op, formula.native != nullptr, "a formula of rule ", formula.rule, " is native only, but has no function");
  const uint16_t apart = BP_FORMULA_ZERO | BP_FORMULA_REFUSED | BP_FORMULA_LOOP | BP_FORMULA_TUPLE;
  require(op, (formula.flags & apart) == 0 && formula.rule != BP_RULE_SHAPE, "a formula of rule ", formula.rule,
          " is native only and something else as well");
}

void verify_formula(const OpRecord& op, const bp_formula& formula) {
  const uint32_t n_nodes = op.def.program->n_nodes;
  require(op, formula.rule >= BP_RULE_VJP && formula.rule <= BP_RULE_SHAPE, "a formula has the unknown rule ",
          formula.rule);
  for (uint32_t i = 0; i < formula.n_targets; ++i)
    require(op, formula.targets[i] < op.args.size(), "a formula is for argument ", formula.targets[i],
            " beyond the last");
  for (uint32_t i = 0; i < formula.n_roots; ++i)
    require(op, formula.roots[i] < n_nodes, "a formula's root is node ", formula.roots[i], " of ", n_nodes);
  require(op, !(formula.flags & BP_FORMULA_REFUSED) || (formula.text && *formula.text),
          "a rule is refused without a reason");
  if (formula.flags & BP_FORMULA_NATIVE_ONLY) return verify_native_only(op, formula);
  const uint16_t rootless = BP_FORMULA_ZERO | BP_FORMULA_REFUSED | BP_FORMULA_LOOP;
  uint32_t roots = formula.rule == BP_RULE_VJP ? formula.n_targets : static_cast<uint32_t>(op.results.size());
  if (formula.rule == BP_RULE_PUT || (formula.flags & BP_FORMULA_TUPLE)) roots = 1;
  const bool derived_batch = formula.rule == BP_RULE_BATCH && (formula.flags & BP_FORMULA_DERIVED) && !formula.n_roots;
  if ((formula.flags & rootless) || derived_batch) roots = 0;
  require(op, !derived_batch || (formula.flags & BP_FORMULA_REFUSED) || bp_batch_follows(&op.def),
          "a record states that its batch rule follows from its shape, which does not say enough");
  require(op, formula.n_roots == roots, "a formula of rule ", formula.rule, " has ", formula.n_roots,
          " roots; expected ", roots);
  require(op,
          !(formula.flags & BP_FORMULA_TUPLE) || roots == 0 ||
              (formula.rule != BP_RULE_PUT && formula.rule != BP_RULE_SHAPE),
          "only derivatives, decompositions and batch rules give tuples");
  if ((formula.flags & BP_FORMULA_TUPLE) && roots)
    require(op, op.def.program->nodes[formula.roots[0]].kind == BP_NODE_CALL,
            "a formula that gives a tuple must be the call of an op");
}

struct Arity {
  uint16_t least, most;
};
Arity arity(uint16_t kind) {
  switch (kind) {
    case BP_NODE_SHAPE:
    case BP_NODE_NDIM:
    case BP_NODE_DTYPE:
    case BP_NODE_DEVICE:
    case BP_NODE_SELECT:
    case BP_NODE_FIT:
      return {1, 1};
    case BP_NODE_CALL:
      return {0, kMaxArgs};
    case BP_NODE_BUILTIN:
      return {1, kMaxArgs};
    case BP_NODE_IF:
    case BP_NODE_FOLD:
      return {3, 3};
    case BP_NODE_LIST:
      return {0, kMaxNodes};
    case BP_NODE_MAP:
      return {2, 2};
    default:
      return {0, 0};
  }
}

// How many values an immediate may number.
int64_t bound_of_imm(const OpRecord& op, const bp_node& node) {
  const bp_program& program = *op.def.program;
  switch (node.kind) {
    case BP_NODE_CONST:
      return program.n_consts;
    case BP_NODE_ARG:
    case BP_NODE_TANGENT:
    case BP_NODE_NEEDS:
    case BP_NODE_BATCHED:
    case BP_NODE_FIT:
      return static_cast<int64_t>(op.args.size());
    case BP_NODE_OUT:
    case BP_NODE_COTANGENT:
      return static_cast<int64_t>(op.results.size());
    case BP_NODE_CALL:
    case BP_NODE_BUILTIN:
      return program.n_names;
    case BP_NODE_SELECT:
      return kMaxNodes;
    case BP_NODE_MAP:
    case BP_NODE_VAR:
      return 64;
    case BP_NODE_FOLD:
      return 63;  // imm + 1 is a slot too
    default:
      return INT64_MAX;
  }
}

void verify_node(OpRecord& op, uint32_t index) {
  const bp_program& program = *op.def.program;
  const bp_node& node = program.nodes[index];
  require(op, node.kind >= BP_NODE_CONST && node.kind <= BP_NODE_FIT, "node ", index, " has the unknown kind ",
          node.kind);
  const Arity allowed = arity(node.kind);
  require(op, node.n_inputs >= allowed.least && node.n_inputs <= allowed.most, "node ", index, " of kind ", node.kind,
          " has ", node.n_inputs, " inputs");
  require(op, uint64_t{node.first_input} + node.n_inputs <= program.n_inputs, "the inputs of node ", index,
          " lie beyond the last");
  for (uint32_t i = 0; i < node.n_inputs; ++i)
    require(op, program.inputs[node.first_input + i] < index, "node ", index, " reads node ",
            program.inputs[node.first_input + i], ", which is not an earlier one");
  const int64_t bound = bound_of_imm(op, node);
  require(op, bound == INT64_MAX || (node.imm >= 0 && node.imm < bound), "node ", index, " of kind ", node.kind,
          " has the immediate ", node.imm, "; it must be below ", bound);
  if (node.kind == BP_NODE_FIT)
    require(op, op.def.fit_names != nullptr && ((op.tensor_args >> node.imm) & 1), "node ", index,
            " is a FIT, which needs fit_names and a tensor argument");
  if (node.kind != BP_NODE_BUILTIN && node.kind != BP_NODE_CALL) return;
  const char* name = program.names[node.imm];
  const Builtin*& known = op.builtins[static_cast<size_t>(node.imm)];
  const Builtin* builtin = known ? known : find_builtin(name);
  if (node.kind == BP_NODE_CALL) {
    require(op, !builtin, "node ", index, " calls the builtin ", name, " as an op");
    return;
  }
  require(op, builtin != nullptr, "there is no builtin '", name, "'");
  require(op, node.n_inputs >= builtin->min_args && node.n_inputs <= builtin->max_args, "the builtin ", name, " takes ",
          int{builtin->min_args}, " to ", int{builtin->max_args}, " values, not ", node.n_inputs);
  known = builtin;
}

}  // namespace

void verify_program(OpRecord& op) {
  op.builtins.assign(op.def.program->n_names, nullptr);
  for (uint32_t i = 0; i < op.def.program->n_nodes; ++i) verify_node(op, i);
}

void verify_rules(OpRecord& op) {
  require(op, op.shapes.size() == op.results.size(), "it has ", op.results.size(), " results but ", op.shapes.size(),
          " shape rules");
  for (size_t i = 0; i < op.shapes.size(); ++i) {
    const bool list = (op.results[i].flags & BP_ARG_LIST) != 0;
    require(op, !list || std::string_view(op.shapes[i].name) == "dynamic", "result '", op.results[i].name,
            "' is a list, whose shape rule is `dynamic`: the kernel says how many there are");
    verify_shape_rule(op, op.shapes[i]);
  }
  verify_flags(op);
  verify_region(op);
  for (const bp_formula& formula : op.formulas) verify_formula(op, formula);
}

}  // namespace backplane::core
