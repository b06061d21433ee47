// Builds the plan of a formula from the record's program: reach, renumber, verify, and fold constants.
//
// All passes are single loops over nodes in topological order (or against it), so no record can overflow the stack.
#include "record/formula_plan.hpp"

#include <algorithm>
#include <bit>
#include <memory>

#include "record/builtins.hpp"
#include "record/op_record.hpp"
#include "record/plan_steps.hpp"

namespace backplane::core {
namespace {

constexpr uint32_t kUnreached = 0xffffffffu;
constexpr uint32_t kMaxNesting = 8;  // of MAP and FOLD, whose bodies the evaluator enters by recursion

// Which kinds of node a rule may read, apart from ARG and computation.
bool may_read(uint16_t rule, uint16_t kind) {
  switch (kind) {
    case BP_NODE_OUT:
      return rule == BP_RULE_VJP || rule == BP_RULE_JVP;
    case BP_NODE_COTANGENT:
      return rule == BP_RULE_VJP || rule == BP_RULE_PUT;
    case BP_NODE_TANGENT:
      return rule == BP_RULE_JVP;
    case BP_NODE_NEEDS:
      return rule == BP_RULE_VJP || rule == BP_RULE_JVP;
    case BP_NODE_BATCHED:
      return rule == BP_RULE_BATCH;
    case BP_NODE_CALL:
    case BP_NODE_FIT:
      return rule != BP_RULE_SHAPE;
    default:
      return true;
  }
}

bool binds(uint16_t kind) { return kind == BP_NODE_MAP || kind == BP_NODE_FOLD; }
uint64_t bound_slots(const PlanNode& node) {
  return (node.kind == BP_NODE_MAP ? uint64_t{1} : uint64_t{3}) << node.imm;
}
uint32_t body_of(const FormulaPlan& plan, const PlanNode& node) {
  return plan.inputs[node.first_input + node.n_inputs - 1];
}

class Planner {
 public:
  Planner(const OpRecord& op, const bp_formula& formula) : op_(op), formula_(formula), program_(*op.def.program) {}

  FormulaPlan make() {
    renumber();
    find_variables();
    find_wanted();
    if (plan_.straight) mark_last_uses();
    find_free_names();
    find_steps(formula_.rule == BP_RULE_SHAPE, plan_);
    return std::move(plan_);
  }

 private:
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (!condition) [[unlikely]]
      detail::fail(BP_ERROR_VALUE, "op record '", op_.name, "': its formula of rule ", formula_.rule, parts...);
  }
  std::span<uint32_t> inputs(const PlanNode& node) { return {plan_.inputs.data() + node.first_input, node.n_inputs}; }

  void renumber();
  void find_variables();
  void find_wanted();
  void mark_last_uses();
  void find_free_names();
  bool spread_use(std::vector<bool>& used);

  const OpRecord& op_;
  const bp_formula& formula_;
  const bp_program& program_;
  FormulaPlan plan_;
};

// Of a program's nodes one formula reaches few, so a bit for each says which; a word of them is passed over at once.
class Reached {
 public:
  explicit Reached(uint32_t n_nodes) : words_((n_nodes + 63) / 64, 0) {}

  void add(uint32_t node) { words_[node / 64] |= uint64_t{1} << (node % 64); }

  // From the last to the first. `visit` may add nodes before the one that it is given.
  template <class Visit>
  void backwards(Visit&& visit) const {
    for (size_t w = words_.size(); w-- > 0;) {
      uint64_t seen = 0;
      while (const uint64_t left = words_[w] & ~seen) {
        const auto bit = static_cast<uint32_t>(std::bit_width(left) - 1);
        seen |= uint64_t{1} << bit;
        visit(static_cast<uint32_t>(w * 64) + bit);
      }
    }
  }
  template <class Visit>
  void forwards(Visit&& visit) const {
    for (size_t w = 0; w < words_.size(); ++w)
      for (uint64_t left = words_[w]; left; left &= left - 1)
        visit(static_cast<uint32_t>(w * 64) + static_cast<uint32_t>(std::countr_zero(left)));
  }

 private:
  std::vector<uint64_t> words_;
};

void Planner::renumber() {
  Reached reached(program_.n_nodes);
  for (uint32_t i = 0; i < formula_.n_roots; ++i) reached.add(formula_.roots[i]);
  size_t n_nodes = 0, n_inputs = 0;
  reached.backwards([&](uint32_t i) {
    const bp_node& node = program_.nodes[i];
    ++n_nodes;
    n_inputs += node.n_inputs;
    for (uint32_t k = 0; k < node.n_inputs; ++k) reached.add(program_.inputs[node.first_input + k]);
  });
  plan_.nodes.reserve(n_nodes);
  plan_.inputs.reserve(n_inputs);
  plan_.roots.reserve(formula_.n_roots);
  const std::unique_ptr<uint32_t[]> number(new uint32_t[program_.n_nodes]);  // set where a node is reached
  reached.forwards([&](uint32_t i) {
    number[i] = static_cast<uint32_t>(plan_.nodes.size());
    const bp_node& node = program_.nodes[i];
    require(may_read(formula_.rule, node.kind), " holds a node of kind ", node.kind, ", which that rule cannot read");
    require(node.kind != BP_NODE_COTANGENT || formula_.rule != BP_RULE_PUT || node.imm == 0,
            " reads a second piece; `put` has one");
    PlanNode& copy = plan_.nodes.emplace_back(
        PlanNode{node.kind, node.n_inputs, static_cast<uint32_t>(plan_.inputs.size()), node.imm, 0, 0});
    for (uint32_t k = 0; k < node.n_inputs; ++k) plan_.inputs.push_back(number[program_.inputs[node.first_input + k]]);
    if (node.kind == BP_NODE_BUILTIN) {
      const std::string_view name = op_.builtins[static_cast<size_t>(node.imm)]->name;
      if (name == "and") copy.kind = kPlanAnd;
      if (name == "or") copy.kind = kPlanOr;
    }
    const bool plain = copy.kind <= BP_NODE_FIT && copy.kind != BP_NODE_IF && !binds(copy.kind);
    plan_.straight = plan_.straight && plain;
  });
  for (uint32_t i = 0; i < formula_.n_roots; ++i) plan_.roots.push_back(number[formula_.roots[i]]);
}

// Which slots a node depends on, and which are bound inside it. A slot bound twice on one path would need
// a stack of values; codegen numbers slots apart, so it is refused.
void Planner::find_variables() {
  std::vector<uint64_t> bound(plan_.nodes.size(), 0);
  std::vector<uint32_t> nesting(plan_.nodes.size(), 0);
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    PlanNode& node = plan_.nodes[i];
    if (node.kind == BP_NODE_VAR) node.variables = uint64_t{1} << node.imm;
    for (uint32_t input : inputs(node)) {
      node.variables |= plan_.nodes[input].variables;
      bound[i] |= bound[input];
      nesting[i] = std::max(nesting[i], nesting[input]);
    }
    if (!binds(node.kind)) continue;
    const uint64_t slots = bound_slots(node);
    const uint32_t body = body_of(plan_, node);
    require(!(bound[body] & slots), " binds a variable slot again within its own body");
    node.variables = plan_.nodes[body].variables & ~slots;
    for (uint32_t input : inputs(node).first(node.n_inputs - 1u)) node.variables |= plan_.nodes[input].variables;
    bound[i] |= slots;
    require(++nesting[i] <= kMaxNesting, " nests map and fold more than ", kMaxNesting, " deep");
  }
  for (uint32_t root : plan_.roots)
    require(plan_.nodes[root].variables == 0, " reads a variable outside its map or fold");
}

void Planner::find_wanted() {
  for (uint32_t root : plan_.roots) plan_.nodes[root].wanted = ~uint64_t{0};
  for (const PlanNode& node : plan_.nodes) {
    const bool one = node.kind == BP_NODE_SELECT && node.imm < 64;
    for (uint32_t input : inputs(node)) plan_.nodes[input].wanted |= one ? uint64_t{1} << node.imm : ~uint64_t{0};
  }
}

// A node's tensor can go once its last reader has run, unless someone may hand the tensor itself on (only CALL does
// not; FIT may, but where it reads last it takes the tensor over).
void Planner::mark_last_uses() {
  struct Use {
    uint32_t edge = kUnreached;
    uint16_t kind = 0;
    bool kept = false;
  };
  std::vector<Use> uses(plan_.nodes.size());
  for (uint32_t root : plan_.roots) uses[root].kept = true;
  for (const PlanNode& node : plan_.nodes) {
    for (uint32_t k = 0; k < node.n_inputs; ++k) {
      Use& use = uses[plan_.inputs[node.first_input + k]];
      if (use.kind == BP_NODE_FIT) use.kept = true;
      if (node.kind != BP_NODE_CALL && node.kind != BP_NODE_FIT) use.kept = true;
      use.kind = node.kind;
      use.edge = node.first_input + k;
    }
  }
  for (const Use& use : uses)
    if (!use.kept && use.edge != kUnreached) plan_.inputs[use.edge] |= kLastUse;
}

// One pass against the order: marks inputs whose tensors' data are read. True if anything changed.
bool Planner::spread_use(std::vector<bool>& used) {
  bool changed = false;
  const auto mark = [&](uint32_t input, bool use) {
    input &= ~kLastUse;
    if (use && !used[input]) used[input] = changed = true;
  };
  std::vector<bool> slot_used(65, false);
  for (size_t i = 0; i < plan_.nodes.size(); ++i)
    if (plan_.nodes[i].kind == BP_NODE_VAR && used[i]) slot_used[static_cast<size_t>(plan_.nodes[i].imm)] = true;
  for (size_t i = plan_.nodes.size(); i-- > 0;) {
    const PlanNode& node = plan_.nodes[i];
    const auto in = inputs(node);
    switch (node.kind) {
      case BP_NODE_CALL:
      case BP_NODE_FIT:
        for (uint32_t input : in) mark(input, true);
        break;
      case BP_NODE_SELECT:
      case BP_NODE_LIST:
        for (uint32_t input : in) mark(input, used[i]);
        break;
      case BP_NODE_IF:
        mark(in[1], used[i]);
        mark(in[2], used[i]);
        break;
      case BP_NODE_BUILTIN:
        if (op_.builtins[static_cast<size_t>(node.imm)]->passes_tensors)
          for (uint32_t input : in) mark(input, used[i]);
        break;
      case BP_NODE_MAP:
        mark(in[0], slot_used[static_cast<size_t>(node.imm)]);
        mark(in[1], used[i]);
        break;
      case BP_NODE_FOLD: {
        const bool result = used[i] || slot_used[static_cast<size_t>(node.imm)];
        mark(in[0], slot_used[static_cast<size_t>(node.imm) + 1]);
        mark(in[1], result);
        mark(in[2], result);
        break;
      }
      default:
        break;
    }
  }
  return changed;
}

void Planner::find_free_names() {
  std::vector<bool> used(plan_.nodes.size(), false);
  for (uint32_t root : plan_.roots) used[root] = true;
  while (spread_use(used)) {
  }
  FreeNames& free = plan_.free;
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const PlanNode& node = plan_.nodes[i];
    const uint64_t bit = uint64_t{1} << (node.imm & 63);
    if (node.kind == BP_NODE_ARG && (op_.tensor_args & bit)) (used[i] ? free.args : free.arg_metadata) |= bit;
    if (node.kind == BP_NODE_OUT) (used[i] ? free.outs : free.out_metadata) |= bit;
    if (node.kind == BP_NODE_FIT) free.arg_metadata |= bit;
  }
  free.arg_metadata &= ~free.args;
  free.out_metadata &= ~free.outs;
}

}  // namespace

FormulaPlan make_plan(const OpRecord& op, const bp_formula& formula) { return Planner(op, formula).make(); }

}  // namespace backplane::core
