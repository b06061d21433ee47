#include "graph/explain.hpp"

#include <algorithm>

#include "graph/cost.hpp"
#include "graph/print.hpp"
#include "memory/memory.hpp"
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
    if (made.donor != kNone)
      names += (names.empty() ? "" : ", ") + plan.graph->inputs()[plan.graph->value(made.donor).index].name;
  return names;
}

std::string shortened(std::string text) {
  if (const size_t comment = text.find("  # "); comment != std::string::npos) text.resize(comment);
  return text.size() <= 100 ? text : text.substr(0, 97) + "...";
}

}  // namespace

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
  if (sum.budget)
    text += "memory budget " + bytes_text(*sum.budget) + (sum.arena <= *sum.budget ? ": kept" : ": not kept") + ", " +
            std::to_string(sum.recomputed) + " nodes run again; without that " + bytes_text(sum.arena_before) + "\n";
  const std::vector<NodeCost> cost = costs(graph, plan.symbols);
  const std::vector<std::string> reasons = reasons_left_alone(graph, plan.symbols);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (graph.is_erased(id)) continue;
    const std::string amount = text_of(cost[id]);
    text += shortened(node_text(graph, id)) + "\n    " + (said[id].empty() ? "a view: nothing runs" : said[id]) +
            (amount.empty() ? "" : "; " + amount) + "\n" +
            (reasons[id].empty() || said[id].empty() ? "" : "    in no region: " + reasons[id] + "\n");
  }
  return text;
}

}  // namespace backplane::core::graph
