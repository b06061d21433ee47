#include "graph/plans/explain.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "graph/cost.hpp"
#include "graph/text/print.hpp"
#include "memory/memory.hpp"
#include "record/dtype_rules.hpp"
#include "registry/registry.hpp"

namespace backplane::core::graph {
namespace {

std::string who(const Step& step) {
  if (step.kind == Step::Kind::kRegion)
    return name_of(step.region->device()) + ", its compiler: " + step.region->name();
  return name_of(*step.device) + ", the kernel of plugin \"" + step.row->owner->name + "\" (" + step.row->file + ":" +
         std::to_string(step.row->def.line) + ")";
}

// What the dispatcher will do with a node is known at the call; why the node is its, from the op.
std::string why_called(const Node& node) {
  const uint64_t flags = node.op->flags;
  if (flags & BP_OP_HIGHER_ORDER) return "a call: the op takes a function";
  if (flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) return "a view that the caller or a call sees";
  if (flags & BP_OP_DYNAMIC) return "a call: the shape of its result depends on values";
  return "a call: no kernel takes it as it is";
}

// Which inputs' memory a run writes values into, where the caller has given them away.
std::string donors(const PlanData& plan) {
  std::string names;
  for (const Made& made : plan.made)
    if (made.donor != kNone && !made.is_update)
      names += (names.empty() ? "" : ", ") + plan.graph->inputs()[plan.graph->value(made.donor).index].name;
  return names;
}

// How many of the tensors that the graph updates are written by its steps, and not copied into afterwards.
std::string updated_in_place(const PlanData& plan) {
  const auto count = std::ranges::count_if(plan.made, [](const Made& made) { return made.is_update; });
  return std::to_string(count) + " of " + std::to_string(plan.graph->updates.size());
}

std::string without_comment(std::string text) {
  if (const size_t comment = text.find("  # "); comment != std::string::npos) text.resize(comment);
  return text.size() <= 100 ? text : text.substr(0, 97) + "...";
}

std::string short_name(const Node& node) {
  const std::string_view name = node.op->record->name;
  const size_t colon = name.rfind(':');
  return std::string(colon == std::string_view::npos ? name : name.substr(colon + 1));
}

std::string name_of_region(const Graph& graph, const Region& region) {
  constexpr size_t kMostNames = 6;
  std::string text = "fused(";
  for (size_t i = 0; i < region.nodes().size(); ++i) {
    if (i == kMostNames) return text + ", and " + std::to_string(region.nodes().size() - i) + " more)";
    text += (i ? ", " : "") + short_name(graph.node(region.nodes()[i]));
  }
  return text + ")";
}

// file:line of the program, or file:first-last for nodes of several lines of one file.
std::string lines_of(const Graph& graph, std::span<const NodeId> nodes) {
  const Location* first = nullptr;
  int32_t least = 0, most = 0;
  for (const NodeId id : nodes) {
    if (graph.node(id).location == kNone) continue;
    const Location& at = graph.locations()[graph.node(id).location];
    if (!first) {
      first = &at;
      least = most = at.line;
    } else if (at.file == first->file) {
      least = std::min(least, at.line);
      most = std::max(most, at.line);
    }
  }
  if (!first) return "";
  return first->file + ":" + std::to_string(least) + (least == most ? "" : "-" + std::to_string(most));
}

int64_t bytes_of(const PlanData& plan, std::span<const ValueId> values) {
  int64_t sum = 0;
  for (const ValueId v : values) {
    int64_t size = static_cast<int64_t>(kItemSize[plan.graph->value(v).dtype]);
    for (const Dim dim : plan.graph->dims(v)) size *= plan.graph->sizes.evaluate(dim, plan.symbols);
    sum += size;
  }
  return sum;
}

StepFacts facts_of_region(const PlanData& plan, const Region& region, const std::vector<NodeCost>& cost) {
  StepFacts facts{name_of_region(*plan.graph, region), "region", lines_of(*plan.graph, region.nodes()),
                  bytes_of(plan, region.inputs()) + bytes_of(plan, region.outputs()), 0};
  for (const NodeId id : region.nodes()) {
    if (!cost[id].flops) return facts.flops = -1, facts;
    facts.flops += static_cast<int64_t>(*cost[id].flops);
  }
  return facts;
}

// Of a kernel, or of a call, which has no frame: what it runs is noted by itself.
StepFacts facts_of_node(const PlanData& plan, const Step& step, const std::vector<NodeCost>& cost) {
  const Node& node = plan.graph->node(step.node);
  const bool is_call = step.kind == Step::Kind::kCall;
  const std::string_view name = is_call ? node.op->record->name : step.frame.op->name;
  StepFacts facts{std::string(name), is_call ? "call" : "kernel", lines_of(*plan.graph, {&step.node, 1})};
  if (facts.name != node.op->record->name) return facts;  // a cast or copy for the node
  facts.bytes = static_cast<int64_t>(cost[step.node].bytes);
  facts.flops = cost[step.node].flops ? static_cast<int64_t>(*cost[step.node].flops) : -1;
  return facts;
}

}  // namespace

std::vector<StepFacts> facts_of_steps(const PlanData& plan) {
  const std::vector<NodeCost> cost = costs(*plan.graph, plan.symbols);
  std::vector<StepFacts> facts;
  for (const Step& step : plan.steps)
    facts.push_back(step.kind == Step::Kind::kRegion ? facts_of_region(plan, *step.region, cost)
                                                     : facts_of_node(plan, step, cost));
  return facts;
}

std::string explain(const PlanData& plan) {
  const Graph& graph = *plan.graph;
  const PlanSummary& sum = plan.summary;
  std::vector<std::string> said(graph.nodes().size());
  for (const Step& step : plan.steps) {
    const auto say = [&](NodeId id, const std::string& text) {
      // Casts and copies for a node come before its own step.
      said[id] = said[id].empty() ? text : "after a cast or copy, " + text;
    };
    if (step.kind == Step::Kind::kRegion)
      for (const NodeId id : step.region->nodes()) say(id, who(step));
    else
      say(step.node, step.kind == Step::Kind::kCall ? why_called(graph.node(step.node)) : who(step));
  }
  std::string text = "graph " + graph.name + ": " + std::to_string(sum.kernels) + " kernel calls, " +
                     std::to_string(sum.regions) + " regions of " + std::to_string(sum.in_regions) + " nodes, " +
                     std::to_string(sum.views) + " views, " + std::to_string(sum.calls) + " calls\n" +
                     "memory between nodes: " + bytes_text(sum.arena) + ", without reuse " + bytes_text(sum.separate) +
                     "\n";
  if (const std::string names = donors(plan); !names.empty()) text += "memory taken of donated inputs: " + names + "\n";
  if (!graph.updates.empty()) text += "tensors updated without a copy: " + updated_in_place(plan) + "\n";
  if (sum.budget)
    text += "memory budget " + bytes_text(*sum.budget) + (sum.arena <= *sum.budget ? ": kept" : ": not kept") + ", " +
            std::to_string(sum.recomputed) + " nodes run again; without that " + bytes_text(sum.arena_before) + "\n";
  const std::vector<NodeCost> cost = costs(graph, plan.symbols);
  const std::vector<std::string> reasons = reasons_left_alone(graph, plan.symbols);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (graph.is_erased(id)) continue;
    const std::string amount = text_of(cost[id]);
    text += without_comment(node_text(graph, id)) + "\n    " + (said[id].empty() ? "a view: nothing runs" : said[id]) +
            (amount.empty() ? "" : "; " + amount) + "\n" +
            (reasons[id].empty() || said[id].empty() ? "" : "    in no region: " + reasons[id] + "\n");
  }
  return text;
}

}  // namespace backplane::core::graph
