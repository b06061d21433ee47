#include "graph/plans/plan_build.hpp"

#include <algorithm>

#include "graph/plans/kernel_steps.hpp"
#include "graph/plans/made_for.hpp"
#include "graph/plans/plan_memory.hpp"
#include "graph/sizes.hpp"
#include "memory/devices/capture.hpp"
#include "memory/process/epoch.hpp"

namespace backplane::core::graph {
namespace {

// The kind of a node's step; kView: its tensor may still be needed.
enum class Fate : uint8_t { kKernel, kRegion, kView, kCall };

template <class T>
void keep_each_once(std::vector<T*>& pointers) {
  std::sort(pointers.begin(), pointers.end());
  pointers.erase(std::unique(pointers.begin(), pointers.end()), pointers.end());
}

class Builder {
 public:
  Builder(std::shared_ptr<const Graph> graph, std::vector<int64_t> symbols)
      : graph_(*graph), plan_(std::make_unique<PlanData>()), steps_(*plan_) {
    plan_->graph = std::move(graph);
    plan_->symbols = std::move(symbols);
  }
  void run(bool use_compilers);
  std::vector<bool> visible() const;
  void drop_hidden_views(const std::vector<bool>& visible);
  void finish(const std::vector<bool>& visible);
  PlanData& plan() { return *plan_; }
  std::unique_ptr<PlanData> take() { return std::move(plan_); }

 private:
  SlotId slot(ValueId value);
  void bind_root(ValueId value);
  bp_value argument(const Argument& a, SlotCall& call, size_t index);
  Fate node(NodeId id);
  void region(std::shared_ptr<Region> region);
  void note_draws(const Node& node);

  const Graph& graph_;
  std::unique_ptr<PlanData> plan_;
  KernelSteps steps_;
  std::vector<SlotId> slots_;  // of values
  std::vector<Fate> fates_;    // of nodes
  bp_generator_state no_state_{};
};

// A root whose tensor is known at run time alone: row-major, as it is made to be where it is not.
void Builder::bind_root(ValueId value) {
  const Value& v = graph_.value(value);
  std::vector<int64_t> sizes;
  for (const Dim dim : graph_.dims(value)) sizes.push_back(graph_.sizes.evaluate(dim, plan_->symbols));
  slots_[value] = steps_.add_root(new_handle(device_at(v.device), v.dtype, v.ndim, sizes.data()), value);
  plan_->slots[slots_[value]].bound = true;
}

SlotId Builder::slot(ValueId value) {
  if (slots_[value] == kNone) bind_root(value);
  return slots_[value];
}

bp_value Builder::argument(const Argument& a, SlotCall& call, size_t index) {
  bp_value v = a.plain;
  if (a.is_value()) {
    call.slots[index] = slot(a.value());
    return tensor_value(steps_.handle(call.slots[index]));
  }
  if (a.is_values()) {
    auto& list = plan_->lists.emplace_back();
    for (const ValueId one : Argument(a).values()) {
      call.lists[index].push_back(one == kNone ? kNone : slot(one));
      list.push_back(one == kNone ? nullptr : steps_.handle(call.lists[index].back()));
    }
    v.u.tensors = list.data();
  } else if (a.is_draw()) {
    v.count = 0;
    v.u.g = &no_state_;
  } else if (a.is_symbolic()) {
    v = evaluated(graph_, a, plan_->symbols, plan_->ints);
  }
  return v;
}

// The step that was appended last takes the node's draws, where it has any.
void Builder::note_draws(const Node& node) {
  const std::span<const Argument> arguments = graph_.arguments(node);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_draw()) continue;
    const Dim offset = *reinterpret_cast<const Dim*>(&arguments[i].plain.u.i);
    plan_->draw_patches.push_back({plan_->steps.back().args + static_cast<uint32_t>(i), arguments[i].draw(),
                                   static_cast<uint64_t>(graph_.sizes.evaluate(offset, plan_->symbols))});
  }
}

Fate Builder::node(NodeId id) {
  const Node& node = graph_.node(id);
  Step call_step;
  call_step.kind = Step::Kind::kCall;
  call_step.node = id;
  if (node.op->flags & (BP_OP_HIGHER_ORDER | BP_OP_COMPOSITE)) {
    plan_->steps.push_back(call_step);
    return Fate::kCall;
  }
  SlotCall call;
  call.op = node.op;
  call.node = id;
  call.slots.assign(node.n_arguments, kNone);
  call.lists.resize(node.n_arguments);
  for (size_t i = 0; i < node.n_arguments; ++i) call.args.push_back(argument(graph_.arguments(node)[i], call, i));
  if (node.op->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) {
    SlotId view = kNone;
    const bool shown = steps_.view(call, view);
    if (shown) slots_[node.first_result] = view;
    plan_->steps.push_back(call_step);
    return shown ? Fate::kView : Fate::kCall;
  }
  std::vector<ValueId> values;
  for (uint32_t i = 0; i < node.n_results; ++i) values.push_back(node.first_result + i);
  std::vector<SlotId> results;
  if (!steps_.kernel(call, values, results)) {
    plan_->steps.push_back(call_step);
    return Fate::kCall;
  }
  note_draws(node);
  std::copy(results.begin(), results.end(), slots_.begin() + node.first_result);
  return Fate::kKernel;
}

void Builder::region(std::shared_ptr<Region> region) {
  for (const NodeId id : region->nodes()) fates_[id] = Fate::kRegion;
  Step step;
  step.kind = Step::Kind::kRegion;
  step.region = region.get();
  step.frame = region->frame();
  step.device = &region->device();
  step.node = region->nodes().back();
  step.args = static_cast<uint32_t>(plan_->arguments.size());
  step.n_args = static_cast<int32_t>(region->inputs().size());
  step.outs = step.args + static_cast<uint32_t>(step.n_args);
  step.n_outs = static_cast<int32_t>(region->outputs().size());
  const auto add = [&](SlotId slot, uint16_t flags) {
    plan_->patches.push_back({static_cast<uint32_t>(plan_->arguments.size()), slot});
    bp_value v = tensor_value(steps_.handle(slot));
    v.flags = flags;
    plan_->arguments.push_back(v);
  };
  for (const ValueId v : region->inputs()) add(slot(v), 0);
  for (const ValueId v : region->outputs()) {
    bind_root(v);
    plan_->slots[slots_[v]].bound = false;  // the memory's layout says
    add(slots_[v], BP_VALUE_GIVEN);
  }
  plan_->steps.push_back(step);
  plan_->regions.push_back(std::move(region));
}

void Builder::run(bool use_compilers) {
  slots_.assign(graph_.values().size(), kNone);
  fates_.assign(graph_.nodes().size(), Fate::kCall);
  for (const Input& input : graph_.inputs()) bind_root(input.value);
  for (Unit& unit : partition(graph_, plan_->symbols, use_compilers)) {
    const NodeId id = unit.region ? unit.region->nodes().back() : unit.node;
    try {
      if (unit.region)
        region(std::move(unit.region));
      else
        fates_[id] = node(id);
    } catch (...) {
      rethrow_with_node(graph_, id);
    }
  }
}

// Whose tensors does somebody else than a kernel see: the caller, or a call through the dispatcher?
std::vector<bool> Builder::visible() const {
  std::vector<bool> seen(graph_.values().size(), false);
  for (const ValueId v : graph_.outputs) seen[v] = true;
  for (auto id = static_cast<NodeId>(graph_.nodes().size()); id-- > 0;) {
    const Node& node = graph_.node(id);
    const bool calls = fates_[id] == Fate::kCall || (fates_[id] == Fate::kView && seen[node.first_result]);
    if (!graph_.is_erased(id) && calls) Graph::each_value(graph_.arguments(node), [&](ValueId v) { seen[v] = true; });
  }
  return seen;
}

void Builder::drop_hidden_views(const std::vector<bool>& seen) {
  std::erase_if(plan_->steps, [&](const Step& step) {
    const bool hidden = step.kind == Step::Kind::kCall && fates_[step.node] == Fate::kView &&
                        !seen[graph_.node(step.node).first_result];
    plan_->summary.views += hidden;
    return hidden;
  });
}

void Builder::finish(const std::vector<bool>& seen) {
  for (const Input& input : graph_.inputs()) plan_->held.push_back(input.value);
  for (const Step& step : plan_->steps) {
    const Node& node = graph_.node(step.node);
    if (step.kind != Step::Kind::kCall) {
      ++(step.region ? plan_->summary.regions : plan_->summary.kernels);
      plan_->devices.push_back(step.device);
      const bool capturable = step.region ? step.region->capturable() : step.row->def.flags & BP_KERNEL_CAPTURABLE;
      plan_->capturable = plan_->capturable && (capturable || step.device->synchronous());
      if (step.region) note_made_for(plan_->made_for, *step.device, step.region->generation());
      continue;
    }
    ++plan_->summary.calls;
    for (uint32_t i = 0; i < node.n_results; ++i) plan_->held.push_back(node.first_result + i);
  }
  for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
    if (fates_[id] != Fate::kKernel && fates_[id] != Fate::kRegion) continue;
    plan_->summary.in_regions += fates_[id] == Fate::kRegion;
    for (uint32_t i = 0; i < graph_.node(id).n_results; ++i)
      if (seen[graph_.node(id).first_result + i]) plan_->held.push_back(graph_.node(id).first_result + i);
  }
  const auto note_constant = [&](const Tensor& constant) {
    if (constant.get()->storage) note_made_for(plan_->made_for, *constant.get()->storage);
  };
  std::for_each(plan_->kept.begin(), plan_->kept.end(), note_constant);
  for (const Constant& constant : graph_.constants()) note_constant(constant.tensor);  // folded ones among them
  keep_each_once(plan_->devices);
  keep_each_once(plan_->plugins);
}

}  // namespace

std::unique_ptr<PlanData> build_plan(std::shared_ptr<const Graph> graph, std::vector<int64_t> symbols,
                                     std::span<const Tensor> inputs, const std::vector<bool>& donated,
                                     bool use_compilers, std::span<const std::shared_ptr<GraphFunction>> functions) {
  CallGuard guard;
  const CapturePause pause;  // its constants serve other runs too
  Builder builder(std::move(graph), std::move(symbols));
  for (const Tensor& input : inputs)
    builder.plan().input_shapes.emplace_back(input.shape().begin(), input.shape().end());
  builder.plan().functions.assign(functions.begin(), functions.end());
  builder.run(use_compilers);
  const std::vector<bool> visible = builder.visible();
  builder.drop_hidden_views(visible);
  builder.finish(visible);
  lay_out_memory(builder.plan(), visible, donated);
  return builder.take();
}

}  // namespace backplane::core::graph
