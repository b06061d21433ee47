#include "graph/cost.hpp"

#include <cstdio>
#include <iterator>
#include <string_view>
#include <utility>

#include "graph/passes/decompose.hpp"
#include "memory/memory.hpp"
#include "record/dtype_rules.hpp"
#include "record/flop_counts.hpp"

namespace backplane::core::graph {
namespace {

class Costing {
 public:
  Costing(const Graph& graph, std::span<const int64_t> symbols) : graph_(graph), symbols_(symbols) {}

  uint64_t elements(ValueId v) const {
    uint64_t count = 1;
    for (const Dim dim : graph_.dims(v)) count *= size(dim);
    return count;
  }

  std::optional<uint64_t> flops(const Node& node) const {
    const uint64_t flags = node.op->flags;
    if (flags & (BP_OP_HIGHER_ORDER | BP_OP_DYNAMIC)) return std::nullopt;
    if (flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) return 0;
    if (flags & BP_OP_RANDOM) return elements(node.first_result);
    const char* family = node.op->record->def.family;
    const std::optional<Counts> counts = family ? counts_of(family) : std::nullopt;
    if (!counts) return std::nullopt;
    const std::span<const Argument> arguments = graph_.arguments(node);
    const bool reads = !arguments.empty() && arguments[0].is_value();
    switch (*counts) {
      case Counts::kNothing:
        return 0;
      case Counts::kResult:
        return elements(node.first_result);
      case Counts::kArgument:
        return reads ? elements(arguments[0].value()) : 0;
      case Counts::kProduct: {
        if (!reads || graph_.dims(arguments[0].value()).empty()) return std::nullopt;
        return 2 * elements(node.first_result) * size(graph_.dims(arguments[0].value()).back());
      }
    }
    return std::nullopt;
  }

  uint64_t bytes(const Node& node) const {
    if (node.op->flags & BP_OP_VIEW) return 0;
    uint64_t sum = 0;
    const auto add = [&](ValueId v) { sum += elements(v) * kItemSize[graph_.value(v).dtype]; };
    Graph::each_value(graph_.arguments(node), add);
    for (uint32_t i = 0; i < node.n_results; ++i) add(node.first_result + i);
    return sum;
  }

 private:
  uint64_t size(Dim dim) const { return static_cast<uint64_t>(graph_.sizes.evaluate(dim, symbols_)); }

  const Graph& graph_;
  std::span<const int64_t> symbols_;
};

// The graph in primitives, as far as it decomposes. What a node became has that node's index as its location.
std::unique_ptr<Graph> in_primitives(const Graph& graph) {
  std::unique_ptr<Graph> parts = graph.clone();
  for (NodeId id = 0; id < parts->nodes().size(); ++id) parts->set_location(id, id);
  decompose(*parts, [](const OpEntry& op, const Device&) { return op.record->def.family != nullptr; });
  return parts;
}

std::string flops_text(uint64_t flops) {
  static constexpr const char* kUnits[] = {" FLOP", " kFLOP", " MFLOP", " GFLOP", " TFLOP", " PFLOP"};
  auto shown = static_cast<double>(flops);
  size_t unit = 0;
  for (; shown >= 1000 && unit + 1 < std::size(kUnits); ++unit) shown /= 1000;
  char digits[32];
  std::snprintf(digits, sizeof digits, unit ? "%.1f" : "%.0f", shown);
  return std::string(digits) + kUnits[unit];
}

}  // namespace

std::string text_of(const NodeCost& cost) {
  std::string text = cost.flops ? (*cost.flops ? flops_text(*cost.flops) : "") : "unknown FLOP";
  if (cost.bytes) text += (text.empty() ? "" : ", ") + bytes_text(cost.bytes);
  return text;
}

std::vector<NodeCost> costs(const Graph& graph, std::span<const int64_t> symbols) {
  std::vector<NodeCost> all(graph.nodes().size());
  const Costing whole(graph, symbols);
  for (NodeId id = 0; id < all.size(); ++id) {
    all[id].flops = 0;
    if (!graph.is_erased(id)) all[id].bytes = whole.bytes(graph.node(id));
  }
  const std::unique_ptr<Graph> parts = in_primitives(graph);
  const Costing counted(*parts, symbols);
  for (NodeId id = 0; id < parts->nodes().size(); ++id) {
    if (parts->is_erased(id)) continue;
    std::optional<uint64_t>& sum = all[parts->node(id).location].flops;
    const std::optional<uint64_t> flops = counted.flops(parts->node(id));
    sum = sum && flops ? std::optional(*sum + *flops) : std::nullopt;
  }
  return all;
}

}  // namespace backplane::core::graph
