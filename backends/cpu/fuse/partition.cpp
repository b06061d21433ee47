// Regions grow along the graph's order: a node joins those that make its operands where their spaces unite, and else
// begins one.
//
// No path leaves a region and comes back: each region and each other node has a level above the levels of all that it
// reads from elsewhere, so what is of one level does not depend on one another. Linear in the size of the graph.
#include "fuse/partition.hpp"

namespace backplane::cpu::fuse {
namespace {

constexpr uint32_t kMostNodes = 1024;  // of a region: what it keeps of its values stays in the caches

bool form_fits(NodeKind kind, Form operand, Form result) {
  switch (kind) {
    case NodeKind::kMap:
    case NodeKind::kCast:
      if (operand == Form::kOnes) return true;
      return operand == result || (operand == Form::kKept && result == Form::kFull);
    case NodeKind::kReduce:
      return operand == Form::kFull || operand == Form::kOnes;
    case NodeKind::kColumns:
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
  if (plan.kind == NodeKind::kReduce || plan.kind == NodeKind::kColumns)
    return Space(graph.dims(plan.operand), plan.reduced);
  return Space(graph.dims(graph.node(node).results[0]));
}

struct Region {
  Space space;
  uint32_t parent;  // itself, or the region into which it went
  uint32_t level = 0;
  uint32_t nodes = 0;
  uint32_t work = 0;          // nodes that compute
  bool read_outside = false;  // then its level is fixed
};

class Growth {
 public:
  Growth(const GraphView& graph, bp_device device)
      : graph_(graph), producer_(graph.n_values(), kNone), region_(graph.n_nodes(), kNone), level_(graph.n_nodes(), 0) {
    plans_.reserve(graph.n_nodes());
    for (uint32_t i = 0; i < graph.n_nodes(); ++i) plans_.push_back(plan_of(graph, i, device));
  }

  Partition run() {
    for (uint32_t i = 0; i < graph_.n_nodes(); ++i) {
      const uint32_t region = plans_[i].kind == NodeKind::kNone ? kNone : choose(i);
      place(i, region);
      for (uint32_t k = 0; k < graph_.node(i).n_results; ++k) producer_[graph_.node(i).results[k]] = i;
    }
    drop_last_views();
    return result();
  }

 private:
  static constexpr uint32_t kNone = BP_NO_REGION;

  uint32_t root(uint32_t region) {
    while (regions_[region].parent != region)
      region = regions_[region].parent = regions_[regions_[region].parent].parent;
    return region;
  }
  // The region that makes a value; kNone: another node, or none.
  uint32_t maker(int64_t value) {
    const uint32_t node = producer_[value];
    return node == kNone || region_[node] == kNone ? kNone : root(region_[node]);
  }
  // Of what makes a value.
  uint32_t level_of(int64_t value) {
    const uint32_t region = maker(value);
    if (region != kNone) return regions_[region].level;
    return producer_[value] == kNone ? 0 : level_[producer_[value]];
  }

  // Whether node i is right in `space`, of which `inside(value)` says what is made there.
  template <class Inside>
  bool fits(uint32_t i, const Space& space, Inside&& inside) {
    const Form result = space.form_of(graph_.dims(graph_.node(i).results[0]));
    bool right = result != Form::kOther || plans_[i].kind == NodeKind::kColumns;
    graph_.for_each_read(i, [&](int64_t value) {
      if (!inside(value)) return;
      // Columns are done when the last row is: nobody inside can read them.
      right = right && plans_[producer_[value]].kind != NodeKind::kColumns &&
              form_fits(plans_[i].kind, space.form_of(graph_.dims(value)), result);
    });
    return right;
  }

  // The region that node i joins, several made one where it can be; or a new one; kNone for a view of what lies
  // outside.
  uint32_t choose(uint32_t i) {
    std::vector<uint32_t> makers;
    graph_.for_each_read(i, [&](int64_t value) {
      const uint32_t region = maker(value);
      if (region != kNone && std::find(makers.begin(), makers.end(), region) == makers.end()) makers.push_back(region);
    });
    std::sort(makers.begin(), makers.end(), [&](uint32_t a, uint32_t b) {
      return regions_[a].level != regions_[b].level ? regions_[a].level > regions_[b].level : a < b;
    });
    uint32_t joined = kNone;
    for (const uint32_t candidate : makers) {
      if (joined == kNone)
        joined = join(i, candidate) ? candidate : kNone;
      else
        merge(i, joined, candidate);
    }
    if (joined != kNone || plans_[i].kind == NodeKind::kSame || plans_[i].kind == NodeKind::kColumns) return joined;
    Region fresh;
    fresh.space = own_space(graph_, i, plans_[i]);
    fresh.parent = static_cast<uint32_t>(regions_.size());
    graph_.for_each_read(i, [&](int64_t value) { fresh.level = std::max(fresh.level, level_of(value) + 1); });
    regions_.push_back(std::move(fresh));
    return regions_.back().parent;
  }

  // Is the value computed in its region, or one that was, in another shape?
  bool computed(int64_t value) const {
    for (; producer_[value] != kNone && plans_[producer_[value]].kind == NodeKind::kSame;
         value = plans_[producer_[value]].operand)
      if (count_of(graph_.dims(plans_[producer_[value]].operand)) != count_of(graph_.dims(value))) return false;
    return producer_[value] != kNone && plans_[producer_[value]].kind != NodeKind::kNone;
  }

  bool join(uint32_t i, uint32_t candidate) {
    Region& region = regions_[candidate];
    if (plans_[i].kind == NodeKind::kColumns && !computed(plans_[i].operand)) return false;
    const auto space = unite(region.space, own_space(graph_, i, plans_[i]));
    if (!space || region.nodes >= kMostNodes) return false;
    if (!fits(i, *space, [&](int64_t value) { return maker(value) == candidate; })) return false;
    uint32_t needed = region.level;
    graph_.for_each_read(i, [&](int64_t value) {
      if (maker(value) != candidate) needed = std::max(needed, level_of(value) + 1);
    });
    if (needed > region.level && region.read_outside) return false;
    region.level = needed;
    region.space = *space;
    return true;
  }

  // Takes `other` into the region that node i has joined, where that makes no cycle.
  void merge(uint32_t i, uint32_t joined, uint32_t other) {
    Region &into = regions_[joined], &from = regions_[other];
    const uint32_t level = std::max(into.level, from.level);
    if ((into.level < level && into.read_outside) || (from.level < level && from.read_outside)) return;
    const auto space = unite(into.space, from.space);
    if (!space || into.nodes + from.nodes >= kMostNodes) return;
    if (!fits(i, *space, [&](int64_t value) { return maker(value) == joined || maker(value) == other; })) return;
    into.space = *space;
    into.level = level;
    into.nodes += from.nodes;
    into.work += from.work;
    into.read_outside = into.read_outside || from.read_outside;
    from.parent = joined;
  }

  void place(uint32_t i, uint32_t region) {
    region_[i] = region;
    graph_.for_each_read(i, [&](int64_t value) {
      if (region == kNone) level_[i] = std::max(level_[i], level_of(value) + 1);
      const uint32_t from = maker(value);
      if (from != kNone && from != region) regions_[from].read_outside = true;
    });
    if (region == kNone) return;
    ++regions_[region].nodes;
    regions_[region].work += plans_[i].kind != NodeKind::kSame;
  }

  // A view that only others read costs them nothing, and would cost the region a copy.
  void drop_last_views() {
    std::vector<bool> read_inside(graph_.n_values(), false);
    for (uint32_t i = graph_.n_nodes(); i-- > 0;) {
      if (region_[i] == kNone) continue;
      if (plans_[i].kind == NodeKind::kSame && !read_inside[graph_.node(i).results[0]]) {
        region_[i] = kNone;
        plans_[i].reason = "it is a view that only others read";
        continue;
      }
      graph_.for_each_read(i, [&](int64_t value) {
        if (maker(value) == root(region_[i])) read_inside[value] = true;
      });
    }
  }

  Partition result() {
    Partition out;
    out.regions.assign(graph_.n_nodes(), kNone);
    out.reasons.resize(graph_.n_nodes());
    std::vector<uint32_t> number(regions_.size(), kNone);
    for (uint32_t i = 0; i < graph_.n_nodes(); ++i) {
      out.reasons[i] =
          plans_[i].kind == NodeKind::kSame ? "it is a view of what lies outside a region" : plans_[i].reason;
      if (region_[i] == kNone) continue;
      const uint32_t region = root(region_[i]);
      out.reasons[i] = regions_[region].work < 2 ? "it stands alone, and would gain nothing" : nullptr;
      if (regions_[region].work < 2) continue;
      if (number[region] == kNone) number[region] = out.n_regions++;
      out.regions[i] = number[region];
    }
    return out;
  }

  const GraphView& graph_;
  std::vector<NodePlan> plans_;
  std::vector<uint32_t> producer_;  // per value: the node that makes it
  std::vector<uint32_t> region_;    // per node
  std::vector<uint32_t> level_;     // per node outside regions
  std::vector<Region> regions_;
};

}  // namespace

Partition partition(const GraphView& graph, bp_device device) { return Growth(graph, device).run(); }

Space space_of(const GraphView& region, const std::vector<NodePlan>& plans) {
  std::optional<Space> space;
  // The largest first: a small one may fit a space of rows in more than one way.
  for (const bool reductions : {true, false})
    for (uint32_t i = 0; i < region.n_nodes(); ++i) {
      if ((plans[i].kind == NodeKind::kReduce || plans[i].kind == NodeKind::kColumns) != reductions) continue;
      const Space own = own_space(region, i, plans[i]);
      space = space ? unite(*space, own) : own;
      BP_CHECK(space, VALUE, "the cpu's compiler: ", region.node(i).op,
               " does not fit the region it stands in. Fix: compile ", "regions as `partition` claims them");
    }
  BP_CHECK(space, VALUE, "the cpu's compiler: a region has no nodes");
  return *space;
}

}  // namespace backplane::cpu::fuse
