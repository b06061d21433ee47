// What the fuser tells of nodes and spaces to the growth of regions (backplane/plugin/regions.hpp), and a region's
// space.
#include "fuse/partition.hpp"

#include "backplane/plugin/regions.hpp"
#include "fuse/conv_chains.hpp"

namespace backplane::cpu::fuse {
namespace {

bool form_fits(NodeKind kind, Form operand, Form result) {
  switch (kind) {
    case NodeKind::kMap:
    case NodeKind::kCast:
      if (operand == Form::kOnes) return true;
      return operand == result || (operand == Form::kKept && result == Form::kFull);
    case NodeKind::kReduce:
      return operand == Form::kFull || operand == Form::kOnes;
    case NodeKind::kColumns:
    case NodeKind::kWhole:
      return operand == Form::kFull;
    case NodeKind::kSame: {
      const bool row = operand == Form::kKept || operand == Form::kPrefix;
      if (row && (result == Form::kKept || result == Form::kPrefix)) return true;
      return operand == Form::kOnes || operand == result || (operand == Form::kKept && result == Form::kFull);
    }
    default:
      return false;
  }
}

int64_t count_of(Dims dims) {
  int64_t count = 1;
  for (const int64_t size : dims) count *= size;
  return count;
}

Space own_space(const GraphView& graph, uint32_t node, const NodePlan& plan) {
  if (plan.kind == NodeKind::kReduce || ends_region(plan.kind)) return Space(graph.dims(plan.operand), plan.reduced);
  return Space(graph.dims(graph.node(node).results[0]));
}

class Rules {
 public:
  using Space = fuse::Space;
  static constexpr uint32_t kMostNodes = 1024;  // of a region: what it keeps of its values stays in the caches

  // `chains`: nodes of other regions.
  Rules(const GraphView& graph, bp_device device, const std::vector<ConvChain>& chains)
      : graph_(graph), producer_(graph.n_values(), BP_NO_REGION) {
    plans_.reserve(graph.n_nodes());
    for (uint32_t i = 0; i < graph.n_nodes(); ++i) {
      plans_.push_back(plan_of(graph, i, device));
      for (uint32_t k = 0; k < graph.node(i).n_results; ++k) producer_[graph.node(i).results[k]] = i;
    }
    for (const ConvChain& chain : chains)
      for (const uint32_t i : chain.nodes) {
        plans_[i] = NodePlan{};
        plans_[i].reason = "it runs with a convolution";
      }
  }

  const char* reason(uint32_t i) const { return plans_[i].reason; }
  bool is_view(uint32_t i) const { return plans_[i].kind == NodeKind::kSame; }
  bool begins_region(uint32_t i) const { return !ends_region(plans_[i].kind); }
  bool may_follow(uint32_t i) const { return !ends_region(plans_[i].kind) || computed(plans_[i].operand); }
  Space own_space(uint32_t i) const { return fuse::own_space(graph_, i, plans_[i]); }
  std::optional<Space> unite(const Space& a, const Space& b) const { return fuse::unite(a, b); }

  template <class Inside>
  bool fits(uint32_t i, const Space& space, Inside&& inside) const {
    const Form result = space.form_of(graph_.dims(graph_.node(i).results[0]));
    bool right = result != Form::kOther || ends_region(plans_[i].kind);
    graph_.for_each_read(i, [&](int64_t value) {
      if (!inside(value)) return;
      right = right && !ends_region(plans_[producer_[value]].kind) &&
              form_fits(plans_[i].kind, space.form_of(graph_.dims(value)), result);
    });
    return right;
  }

 private:
  // Is the value computed in its region, or one that was, in another shape?
  bool computed(int64_t value) const {
    for (; producer_[value] != BP_NO_REGION && plans_[producer_[value]].kind == NodeKind::kSame;
         value = plans_[producer_[value]].operand)
      if (count_of(graph_.dims(plans_[producer_[value]].operand)) != count_of(graph_.dims(value))) return false;
    return producer_[value] != BP_NO_REGION && plans_[producer_[value]].kind != NodeKind::kNone;
  }

  const GraphView& graph_;
  std::vector<NodePlan> plans_;
  std::vector<uint32_t> producer_;  // per value: the node that makes it
};

}  // namespace

plugin::Partition partition(const GraphView& graph, bp_device device) {
  const std::vector<ConvChain> chains = conv_chains(graph, device);
  plugin::Partition found = plugin::grow_regions(graph, Rules(graph, device, chains));
  // A chain's results but the last are read within it alone, so it depends on no region that depends on it.
  for (const ConvChain& chain : chains) {
    for (const uint32_t i : chain.nodes) {
      found.regions[i] = found.n_regions;
      found.reasons[i] = nullptr;
    }
    ++found.n_regions;
  }
  return found;
}

Space space_of(const GraphView& region, const std::vector<NodePlan>& plans) {
  std::optional<Space> space;
  // The largest first: a small one may fit a space of rows in more than one way.
  for (const bool reductions : {true, false})
    for (uint32_t i = 0; i < region.n_nodes(); ++i) {
      if ((plans[i].kind == NodeKind::kReduce || ends_region(plans[i].kind)) != reductions) continue;
      const Space own = own_space(region, i, plans[i]);
      space = space ? unite(*space, own) : own;
      BP_CHECK(space, VALUE, "the cpu's compiler: ", region.node(i).op,
               " does not fit the region it stands in. Fix: compile ", "regions as `partition` claims them");
    }
  BP_CHECK(space, VALUE, "the cpu's compiler: a region has no nodes");
  return *space;
}

}  // namespace backplane::cpu::fuse
