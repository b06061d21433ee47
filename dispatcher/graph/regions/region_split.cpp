#include "graph/regions/region_split.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "record/dtype_rules.hpp"

namespace backplane::core::graph {
namespace {

constexpr uint64_t kLeastFreed = uint64_t{16} << 10;  // less is not worth a pass over memory
constexpr uint64_t kGain = 2;                         // bytes freed for each that is handed on

}  // namespace

RegionSplit::RegionSplit(const Graph& graph, std::span<const int64_t> symbols, std::vector<NodeId> runs_at)
    : graph_(graph), symbols_(symbols), runs_at_(std::move(runs_at)), uses_(graph.values().size(), 0) {
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (graph.is_erased(id)) continue;
    Graph::each_value(graph.arguments(graph.node(id)), [&](ValueId v) { ++uses_[v]; });
  }
  for (const ValueId v : graph.outputs) ++uses_[v];
}

// A view has none of its own.
uint64_t RegionSplit::bytes_of(ValueId value) const {
  const NodeId maker = graph_.value(value).node;
  if (maker != kNone && (graph_.node(maker).op->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW))) return 0;
  auto bytes = static_cast<int64_t>(kItemSize[graph_.value(value).dtype]);
  for (const Dim dim : graph_.dims(value)) bytes *= graph_.sizes.evaluate(dim, symbols_);
  return static_cast<uint64_t>(bytes);
}

std::vector<std::vector<NodeId>> RegionSplit::parts(std::span<const NodeId> region) {
  // Other nodes may fit into a region only as they are there.
  const auto is_elementwise = [&](NodeId id) { return (graph_.node(id).op->flags & BP_OP_ELEMENTWISE) != 0; };
  if (!std::all_of(region.begin(), region.end(), is_elementwise)) return {{region.begin(), region.end()}};
  const std::unordered_set<NodeId> inside(region.begin(), region.end());
  std::unordered_map<NodeId, NodeId> ready;  // when all that a node reads is there
  for (const NodeId id : region) {
    NodeId at = 0;
    Graph::each_value(graph_.arguments(graph_.node(id)), [&](ValueId v) {
      const NodeId maker = graph_.value(v).node;
      if (maker != kNone) at = std::max(at, inside.contains(maker) ? ready[maker] : runs_at_[maker]);
    });
    ready[id] = at;
  }
  std::vector<NodeId> order(region.begin(), region.end());
  std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return ready[a] < ready[b]; });

  std::vector<std::vector<NodeId>> parts(1);
  std::unordered_map<ValueId, uint32_t> seen;  // uses so far
  std::unordered_set<NodeId> part;
  uint64_t freed = 0, handed_on = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = graph_.node(order[i]);
    parts.back().push_back(order[i]);
    part.insert(order[i]);
    handed_on += bytes_of(node.first_result);
    Graph::each_value(graph_.arguments(node), [&](ValueId v) {
      const NodeId maker = graph_.value(v).node;
      if (++seen[v] != uses_[v] || maker == kNone) return;
      (part.contains(maker) ? handed_on : freed) += part.contains(maker) ? -bytes_of(v) : bytes_of(v);
    });
    const bool waits = i + 1 < order.size() && ready[order[i + 1]] > ready[order[i]];
    if (!waits || freed < kLeastFreed || freed < kGain * handed_on) continue;
    parts.emplace_back();
    part.clear();
    freed = handed_on = 0;
  }
  for (std::vector<NodeId>& each : parts) std::sort(each.begin(), each.end());
  return parts;
}

}  // namespace backplane::core::graph
