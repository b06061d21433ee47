// How a backend's compiler cuts a graph into regions. A node joins the regions that make its operands if it fits them;
// else it begins a new region.
//
// No path leaves a region and comes back: the level of each region, and of each other node, is above the levels of its
// inputs from elsewhere. So regions and nodes of one level do not depend on each other. Recomputed nodes, and their
// readers, do not join a region that begins earlier. Linear in the size of the graph. Header-only; the compiler's Rules
// define the content of a region:
//
//   Space                              what the nodes of a region have in common; copyable
//   kMostNodes                         of a region
//   const char* reason(node)           why it takes no such node; nullptr: it does
//   bool is_view(node)                 it costs nothing, inside a region or outside
//   bool begins_region(node)           else it stands only behind others
//   bool may_follow(node)              with what makes its operands; asked once they have been placed
//   Space own_space(node)              of a node alone
//   std::optional<Space> unite(a, b)   of regions or nodes that become one
//   bool fits(node, space, inside)     may it join? inside(value) says whether a node there makes the value
//   bool joins_alike(space)            do regions of it that share no value become one? Rules may leave it out: none do
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "backplane/abi/extensions.h"
#include "backplane/plugin/graph_view.hpp"

namespace backplane::plugin {

struct Partition {
  std::vector<uint32_t> regions;     // per node; BP_NO_REGION: left alone
  std::vector<const char*> reasons;  // per node that is left alone
  uint32_t n_regions = 0;
};

template <class Rules>
class RegionGrowth {
 public:
  RegionGrowth(const GraphView& graph, const Rules& rules)
      : graph_(graph),
        rules_(rules),
        producer_(graph.n_values(), kNone),
        region_(graph.n_nodes(), kNone),
        level_(graph.n_nodes(), 0),
        since_(graph.n_nodes(), 0),
        reasons_(graph.n_nodes(), nullptr) {}

  Partition run() {
    for (uint32_t i = 0; i < graph_.n_nodes(); ++i) {
      reasons_[i] = rules_.reason(i);
      find_since(i);
      place(i, reasons_[i] != nullptr ? kNone : choose(i));
      for (uint32_t k = 0; k < graph_.node(i).n_results; ++k) producer_[graph_.node(i).results[k]] = i;
    }
    if constexpr (requires(const Rules& r, const Space& space) { r.joins_alike(space); }) merge_alike();
    drop_last_views();
    return result();
  }

 private:
  using Space = typename Rules::Space;
  static constexpr uint32_t kNone = BP_NO_REGION;
  struct Region {
    Space space;
    uint32_t parent;  // itself, or the region into which it went
    uint32_t first;   // node
    uint32_t since;   // the most of its nodes
    uint32_t level = 0;
    uint32_t nodes = 0;
    uint32_t work = 0;          // nodes that compute
    bool read_outside = false;  // then its level is fixed
  };

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

  bool is_recomputed(uint32_t node) const { return graph_.node(node).flags & BP_GRAPH_NODE_RECOMPUTED; }
  // The first node of the run of recomputed ones that node i is in, or that it reads.
  void find_since(uint32_t i) {
    if (is_recomputed(i)) since_[i] = i > 0 && is_recomputed(i - 1) ? since_[i - 1] : i;
    graph_.for_each_read(i, [&](int64_t value) {
      if (producer_[value] != kNone) since_[i] = std::max(since_[i], since_[producer_[value]]);
    });
  }

  // The region that node i joins, several made one where it can be; or a new one; kNone for what begins none.
  uint32_t choose(uint32_t i) {
    std::vector<uint32_t> makers;
    graph_.for_each_read(i, [&](int64_t value) {
      const uint32_t region = maker(value);
      if (region != kNone && std::find(makers.begin(), makers.end(), region) == makers.end()) makers.push_back(region);
    });
    std::sort(makers.begin(), makers.end(), [&](uint32_t a, uint32_t b) {
      return regions_[a].level != regions_[b].level ? regions_[a].level > regions_[b].level : a < b;
    });
    merge_level(i, makers);
    uint32_t joined = kNone;
    for (const uint32_t candidate : makers) {
      if (root(candidate) != candidate) continue;
      if (joined == kNone)
        joined = join(i, candidate) ? candidate : kNone;
      else
        merge(i, joined, candidate);
    }
    if (joined != kNone || rules_.is_view(i) || !rules_.begins_region(i)) return joined;
    const auto fresh = static_cast<uint32_t>(regions_.size());
    regions_.push_back({rules_.own_space(i), fresh, i, since_[i]});
    graph_.for_each_read(
        i, [&](int64_t value) { regions_[fresh].level = std::max(regions_[fresh].level, level_of(value) + 1); });
    return fresh;
  }

  // Makers of one level do not depend on one another: what reads from several of the highest finds them in one region,
  // though others read from each already. `makers`: the highest level first.
  void merge_level(uint32_t i, const std::vector<uint32_t>& makers) {
    if (makers.size() < 2 || !rules_.may_follow(i)) return;
    const uint32_t level = regions_[makers[0]].level;
    uint32_t needed = level;  // for the node to join them
    graph_.for_each_read(i, [&](int64_t value) {
      if (maker(value) == kNone || regions_[maker(value)].level != level)
        needed = std::max(needed, level_of(value) + 1);
    });
    for (size_t k = 1; k < makers.size() && regions_[makers[k]].level == level; ++k) {
      const Region &into = regions_[makers[0]], &from = regions_[makers[k]];
      if (needed > level && (into.read_outside || from.read_outside)) return;
      if (std::min(into.first, from.first) >= since_[i]) merge(i, makers[0], makers[k]);
    }
  }

  bool join(uint32_t i, uint32_t candidate) {
    Region& region = regions_[candidate];
    if (!rules_.may_follow(i) || region.nodes >= Rules::kMostNodes || region.first < since_[i]) return false;
    const auto space = rules_.unite(region.space, rules_.own_space(i));
    if (!space || !rules_.fits(i, *space, [&](int64_t value) { return maker(value) == candidate; })) return false;
    uint32_t needed = region.level;
    graph_.for_each_read(i, [&](int64_t value) {
      if (maker(value) != candidate) needed = std::max(needed, level_of(value) + 1);
    });
    if (needed > region.level && region.read_outside) return false;
    region.level = needed;
    region.since = std::max(region.since, since_[i]);
    region.space = *space;
    return true;
  }

  // Takes `other` into the region that node i has joined, or will, where that makes no cycle and leaves room for i.
  void merge(uint32_t i, uint32_t joined, uint32_t other) {
    Region &into = regions_[joined], &from = regions_[other];
    const uint32_t since = std::max(into.since, from.since);
    if (std::min(into.first, from.first) < since) return;
    const uint32_t level = std::max(into.level, from.level);
    if ((into.level < level && into.read_outside) || (from.level < level && from.read_outside)) return;
    std::optional<Space> space = rules_.unite(into.space, from.space);
    if (space) space = rules_.unite(*space, rules_.own_space(i));
    if (!space || into.nodes + from.nodes >= Rules::kMostNodes) return;
    if (!rules_.fits(i, *space, [&](int64_t value) { return maker(value) == joined || maker(value) == other; })) return;
    into.space = *space;
    take(into, from, joined, since, level);
  }

  // Takes `other` into `joined`, which depend on each other nowhere where their levels are equal, or become so.
  bool merge_whole(uint32_t joined, uint32_t other) {
    Region &into = regions_[joined], &from = regions_[other];
    const uint32_t since = std::max(into.since, from.since), level = std::max(into.level, from.level);
    if (std::min(into.first, from.first) < since || into.nodes + from.nodes > Rules::kMostNodes) return false;
    if ((into.level < level && into.read_outside) || (from.level < level && from.read_outside)) return false;
    take(into, from, joined, since, level);
    return true;
  }

  // Each region joins the region of the highest level, or else the last region that did not join one.
  void merge_alike() {
    std::map<Space, std::vector<uint32_t>> alike;
    for (uint32_t region = 0; region < regions_.size(); ++region)
      if (root(region) == region && rules_.joins_alike(regions_[region].space))
        alike[regions_[region].space].push_back(region);
    for (auto& [space, all] : alike) {
      std::stable_sort(all.begin(), all.end(),
                       [&](uint32_t a, uint32_t b) { return regions_[a].level > regions_[b].level; });
      uint32_t last = all[0];
      for (size_t k = 1; k < all.size(); ++k)
        if (!merge_whole(all[0], all[k]) && (last == all[0] || !merge_whole(last, all[k]))) last = all[k];
    }
  }

  void take(Region& into, Region& from, uint32_t joined, uint32_t since, uint32_t level) {
    into.first = std::min(into.first, from.first);
    into.since = since;
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
    regions_[region].work += !rules_.is_view(i);
  }

  // A view that only others read costs them nothing, and would cost the region a copy.
  void drop_last_views() {
    std::vector<bool> read_inside(graph_.n_values(), false);
    for (uint32_t i = graph_.n_nodes(); i-- > 0;) {
      if (region_[i] == kNone) continue;
      if (rules_.is_view(i) && !read_inside[graph_.node(i).results[0]]) {
        region_[i] = kNone;
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
    out.reasons = std::move(reasons_);
    std::vector<uint32_t> number(regions_.size(), kNone);
    for (uint32_t i = 0; i < graph_.n_nodes(); ++i) {
      if (region_[i] == kNone) {
        if (out.reasons[i] == nullptr)
          out.reasons[i] = rules_.is_view(i) ? "it is a view of a value from outside, or only other nodes read it"
                                             : "no region makes its operands";
        continue;
      }
      const uint32_t region = root(region_[i]);
      out.reasons[i] = regions_[region].work < 2 ? "it is a single node, which fusion would not make faster" : nullptr;
      if (regions_[region].work < 2) continue;
      if (number[region] == kNone) number[region] = out.n_regions++;
      out.regions[i] = number[region];
    }
    return out;
  }

  const GraphView& graph_;
  const Rules& rules_;
  std::vector<uint32_t> producer_;  // per value: the node that makes it
  std::vector<uint32_t> region_;    // per node
  std::vector<uint32_t> level_;     // per node outside regions
  std::vector<uint32_t> since_;     // per node: from where on its region may begin
  std::vector<const char*> reasons_;
  std::vector<Region> regions_;
};

template <class Rules>
Partition grow_regions(const GraphView& graph, const Rules& rules) {
  return RegionGrowth<Rules>(graph, rules).run();
}

}  // namespace backplane::plugin
