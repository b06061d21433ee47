#include "graph/extract.hpp"

#include "graph/passes/dead_code.hpp"

namespace backplane::core::graph {
namespace {

class Extraction {
 public:
  Extraction(const Graph& whole, std::span<const ValueId> inputs)
      : whole_(whole), inputs_(inputs), part_(std::make_shared<Graph>()), moved_(whole.values().size(), kNone) {
    part_->copy_facts(whole);
    for (const ValueId v : inputs)
      moved_[v] = part_->add_input("x" + std::to_string(part_->inputs().size()), whole.type(v));
  }

  std::shared_ptr<Graph> run(std::span<const ValueId> outputs) {
    const std::vector<bool> needed = needed_nodes(whole_, outputs, inputs_);
    for (NodeId id = 0; id < whole_.nodes().size(); ++id)
      if (needed[id]) add_node(whole_.node(id));
    for (const ValueId v : outputs) part_->outputs.push_back(moved(v));
    return std::move(part_);
  }

 private:
  ValueId moved(ValueId v) {
    if (moved_[v] != kNone) return moved_[v];
    const Value& value = whole_.value(v);
    BP_CHECK(value.kind == Value::Kind::kConstant, INTERNAL, "graph ", whole_.name,
             ": a part of it needs a value that is not among the part's inputs");
    const Constant& constant = whole_.constants()[value.index];
    return moved_[v] = part_->add_constant(constant.tensor, constant.name, constant.live);
  }

  Argument moved(const Argument& a) {
    if (a.is_value()) return Argument::of(moved(a.value()));
    if (a.is_values()) {
      std::vector<ValueId> list;
      for (const ValueId v : a.values()) list.push_back(v == kNone ? kNone : moved(v));
      return part_->list(list);
    }
    BP_CHECK(!a.is_symbolic(), NOT_IMPLEMENTED, "graph ", whole_.name,
             ": a part of it has a size that is not a number");
    return a.is_draw() || a.is_graph() ? a : part_->copy(a.plain);
  }

  void add_node(const Node& node) {
    std::vector<Argument> arguments;
    for (const Argument& a : whole_.arguments(node)) arguments.push_back(moved(a));
    std::vector<Type> types;
    for (uint32_t i = 0; i < node.n_results; ++i) types.push_back(whole_.type(node.first_result + i));
    const uint32_t location = node.location == kNone ? kNone : part_->add_location(whole_.locations()[node.location]);
    const ValueId first = part_->node(part_->add_node(*node.op, arguments, types, location, node.flags)).first_result;
    for (uint32_t i = 0; i < node.n_results; ++i)
      if (moved_[node.first_result + i] == kNone) moved_[node.first_result + i] = first + i;
  }

  const Graph& whole_;
  std::span<const ValueId> inputs_;
  std::shared_ptr<Graph> part_;
  std::vector<ValueId> moved_;  // by value of the whole
};

}  // namespace

std::shared_ptr<Graph> extract(const Graph& whole, std::span<const ValueId> inputs, std::span<const ValueId> outputs) {
  return Extraction(whole, inputs).run(outputs);
}

}  // namespace backplane::core::graph
