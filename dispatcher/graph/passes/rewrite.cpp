#include "graph/passes/rewrite.hpp"

#include <algorithm>
#include <unordered_map>

#include "bp_rewrites.hpp"
#include "graph/passes/rewrite_words.hpp"
#include "graph/shown_values.hpp"
#include "record/plain_value.hpp"
#include "registry/registry.hpp"

namespace backplane::core::graph {

std::span<const RewriteRule> rewrite_rules() { return kRewriteRules; }
const PatternNode& pattern_node(uint16_t index) { return kPatternNodes[index]; }
std::span<const uint16_t> pattern_inputs(const PatternNode& node) {
  return {kPatternInputs + node.first_input, node.n_inputs};
}

namespace {

// Whether the op runs there: a rule must not lead to what a device cannot do.
bool serves(const OpEntry& op, const Value& result) {
  if (op.withdrawn.load(std::memory_order_acquire)) return false;
  const core::Plan& plan = op.plan();
  if (result.device.backend >= plan.n_devices) return false;
  const DeviceSlot& slot = plan.devices[result.device.backend];
  if (slot.otherwise != DeviceRule::kMissing) return true;
  return std::any_of(slot.rows.begin(), slot.rows.end(), [&](const KernelRow* row) {
    return row->def.dtypes == 0 || (row->def.dtypes & BP_DTYPE_BIT(result.dtype)) != 0;
  });
}

class Rewriting {
 public:
  explicit Rewriting(Graph& graph) : graph_(graph), shown_(shown_values(graph)) {
    ops_.resize(std::size(kPatternNodes), nullptr);
    for (size_t i = 0; i < std::size(kPatternNodes); ++i) {
      if (kPatternNodes[i].kind != PatternNode::kCall) continue;
      const uint32_t handle = find_op_loaded(kPatternNodes[i].op);
      if (handle != BP_NO_OP) ops_[i] = op_entry(handle);
    }
    for (const RewriteRule& rule : kRewriteRules)
      if (const OpEntry* op = ops_[rule.from]) rules_[op].push_back(&rule);
  }

  size_t run() {
    const auto n = static_cast<NodeId>(graph_.nodes().size());
    for (NodeId id = 0; id < n; ++id) {
      if (graph_.is_erased(id) || graph_.node(id).n_results != 1) continue;
      const ValueId made = graph_.node(id).first_result;
      const auto first_new = static_cast<NodeId>(graph_.nodes().size());
      ValueId now = made;
      while (step({id, made, first_new}, now)) ++applied_;
      if (now == made) continue;
      graph_.replace_uses(made, now);
      graph_.erase(id);
    }
    if (applied_) graph_.compact();
    return applied_;
  }

 private:
  struct Turn {
    NodeId before;  // where new nodes stand
    ValueId made;   // of the node whose turn it is
    NodeId first_new;
  };

  // Applies one more rule to `now`, the replacement of `made` so far: false where none applies.
  bool step(const Turn& turn, ValueId& now) {
    const NodeId id = graph_.value(now).node;
    // Another value has its own turn, and its own uses.
    if (id == kNone || (now != turn.made && id < turn.first_new)) return false;
    const auto rules = rules_.find(graph_.node(id).op);
    if (rules == rules_.end()) return false;
    for (const RewriteRule* rule : rules->second) {
      std::fill_n(bound_, kMostNames, false);
      if (!matches(rule->from, id) || !conditions_hold(*rule)) continue;
      const ValueId next = build(rule->to, turn.before, turn.made, now);
      if (next == kNone) continue;
      if (now != turn.made) graph_.erase(id);
      now = next;
      return true;
    }
    return false;
  }

  bool matches(uint16_t pattern, NodeId id) {
    const PatternNode& p = kPatternNodes[pattern];
    const Node& node = graph_.node(id);
    if (node.op != ops_[pattern] || node.n_results != 1 || node.n_arguments != p.n_inputs) return false;
    for (uint16_t i = 0; i < p.n_inputs; ++i) {
      const Argument a = graph_.arguments(node)[i];
      const uint16_t input = kPatternInputs[p.first_input + i];
      const bool fits = input == PatternNode::kDefault ? same_plain(a.plain, node.op->record->args[i].default_value)
                                                       : argument_matches(input, a);
      if (!fits) return false;
    }
    return true;
  }

  bool argument_matches(uint16_t pattern, const Argument& a) {
    const PatternNode& p = kPatternNodes[pattern];
    switch (p.kind) {
      case PatternNode::kName:
        if (bound_[p.index]) return same(found_[p.index], a);
        bound_[p.index] = true;
        found_[p.index] = a;
        return !a.is_values() && !a.is_draw() && !a.is_graph();
      case PatternNode::kNumber:
        return is_the_number(a, p.number);
      case PatternNode::kDtype:
        return a.plain.tag == BP_TAG_DTYPE && a.plain.u.i == p.index;
      case PatternNode::kCall: {
        if (!a.is_value()) return false;
        const NodeId maker = graph_.value(graph_.resolve(a.value())).node;
        return maker != kNone && matches(pattern, maker);
      }
      default:
        return false;
    }
  }
  bool same(const Argument& a, const Argument& b) const {
    if (a.is_value() != b.is_value()) return false;
    return a.is_value() ? graph_.resolve(a.value()) == graph_.resolve(b.value()) : same_plain(a.plain, b.plain);
  }

  std::vector<Argument> inputs_of(const PatternNode& p) const {
    std::vector<Argument> inputs;
    for (uint16_t i = 0; i < p.n_inputs; ++i)
      inputs.push_back(found_[kPatternNodes[kPatternInputs[p.first_input + i]].index]);
    return inputs;
  }
  bool conditions_hold(const RewriteRule& rule) const {
    for (uint16_t i = 0; i < rule.n_conditions; ++i) {
      const PatternNode& condition = kPatternNodes[kConditions[rule.first_condition + i]];
      if (!holds(graph_, static_cast<RewriteWord>(condition.index), inputs_of(condition))) return false;
    }
    return true;
  }

  // The replacement of `now`: an existing value, or a new node's; kNone if the rule does not apply here.
  ValueId build(uint16_t pattern, NodeId before, ValueId made, ValueId now) {
    const PatternNode& p = kPatternNodes[pattern];
    if (p.kind == PatternNode::kName) {
      const Argument& a = found_[p.index];
      if (!a.is_value()) return kNone;
      const ValueId value = graph_.resolve(a.value());
      const bool view = is_view(graph_.node(graph_.value(made).node));
      return same_type(value, now) && (view || !shown_[made]) ? value : kNone;
    }
    // What an op such as reshape gives the caller may be a copy of a view. It then shares memory with other views of
    // this copy alone.
    if (shown_[made] && graph_.node(graph_.value(made).node).op->flags & BP_OP_MAYBE_VIEW) return kNone;
    const OpEntry* op = ops_[pattern];
    if (!op || op->n_args != p.n_inputs || !serves(*op, graph_.value(now))) return kNone;
    std::vector<Argument> arguments;
    for (uint16_t i = 0; i < p.n_inputs; ++i) {
      const uint16_t input = kPatternInputs[p.first_input + i];
      if (input == PatternNode::kDefault) {
        arguments.push_back(graph_.copy(op->record->args[i].default_value));
        continue;
      }
      arguments.push_back(argument(kPatternNodes[input]));
      if (arguments.back().plain.tag == BP_TAG_ABSENT) return kNone;
    }
    const std::vector<Dim> dims(graph_.dims(now).begin(), graph_.dims(now).end());
    const Value v = graph_.value(now);
    const Type type{v.dtype, v.device, dims};
    const Node old = graph_.node(v.node);
    return graph_.node(graph_.insert_node(before, *op, arguments, {&type, 1}, old.location, old.flags)).first_result;
  }

  Argument argument(const PatternNode& p) {
    bp_value plain{};
    switch (p.kind) {
      case PatternNode::kName:
        return found_[p.index];
      case PatternNode::kFunction:
        return make_argument(graph_, static_cast<RewriteWord>(p.index), inputs_of(p));
      case PatternNode::kDtype:
        plain.tag = BP_TAG_DTYPE;
        plain.u.i = p.index;
        return Argument{plain};
      default:
        plain.tag = BP_TAG_FLOAT;
        plain.u.f = p.number;
        return Argument{plain};
    }
  }

  bool same_type(ValueId a, ValueId b) const {
    const Value &x = graph_.value(a), &y = graph_.value(b);
    const auto dims = graph_.dims(a), others = graph_.dims(b);
    return x.dtype == y.dtype && x.device.backend == y.device.backend && x.device.ordinal == y.device.ordinal &&
           std::equal(dims.begin(), dims.end(), others.begin(), others.end());
  }

  Graph& graph_;
  std::vector<bool> shown_;
  std::vector<const OpEntry*> ops_;  // per pattern node
  std::unordered_map<const OpEntry*, std::vector<const RewriteRule*>> rules_;
  Argument found_[kMostNames];
  bool bound_[kMostNames];
  size_t applied_ = 0;
};

}  // namespace

size_t rewrite(Graph& graph) { return Rewriting(graph).run(); }

}  // namespace backplane::core::graph
