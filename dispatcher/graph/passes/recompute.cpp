#include "graph/passes/recompute.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "graph/cost.hpp"
#include "graph/passes/dead_code.hpp"
#include "graph/shown_values.hpp"
#include "record/dtype_rules.hpp"

namespace backplane::core::graph {
namespace {

constexpr size_t kMostRounds = 64;
constexpr size_t kMostNodes = 32;  // that one value may need again

// Does the result share its operand's memory? A reshape of an operand in another order copies.
bool shows_operand(const Graph& graph, const Node& node, ValueId operand) {
  if (node.op->flags & BP_OP_VIEW) return true;
  const NodeId maker = graph.value(operand).node;
  return is_view(node) && (maker == kNone || !(graph.node(maker).op->flags & BP_OP_VIEW));
}

// The lifetimes of values, in the order of the nodes. A view lives in its root; inputs, constants and outputs
// belong to the caller.
class Lives {
 public:
  explicit Lives(const Graph& graph);

  struct Use {
    NodeId node;
    ValueId value;
  };
  bool is_given(ValueId root) const { return made_[root] == kNone; }
  ValueId root(ValueId value) const { return root_[value]; }
  uint64_t bytes(ValueId root) const { return bytes_[root]; }
  NodeId made(ValueId root) const { return made_[root]; }
  NodeId last(ValueId root) const { return last_[root]; }  // the number of nodes: given out
  const std::vector<Use>& uses(ValueId root) const { return uses_[root]; }
  uint64_t peak() const { return peak_; }
  NodeId fullest() const { return fullest_; }

 private:
  std::vector<ValueId> root_;
  std::vector<uint64_t> bytes_;
  std::vector<NodeId> made_, last_;
  std::vector<std::vector<Use>> uses_;
  uint64_t peak_ = 0;
  NodeId fullest_ = 0;
};

uint64_t bytes_of(const Graph& graph, ValueId v) {
  uint64_t bytes = kItemSize[graph.value(v).dtype];
  for (const Dim dim : graph.dims(v)) bytes *= static_cast<uint64_t>(dim.number());
  return bytes;
}

Lives::Lives(const Graph& graph)
    : root_(graph.values().size()),
      bytes_(root_.size(), 0),
      made_(root_.size(), kNone),
      last_(root_.size(), 0),
      uses_(root_.size()) {
  const auto n = static_cast<NodeId>(graph.nodes().size());
  for (ValueId v = 0; v < root_.size(); ++v) root_[v] = v;
  for (NodeId id = 0; id < n; ++id) {
    const Node& node = graph.node(id);
    ValueId viewed = kNone;
    Graph::each_value(graph.arguments(node), [&](ValueId v) {
      if (viewed == kNone) viewed = v;
      uses_[root_[v]].push_back({id, v});
      last_[root_[v]] = id;
    });
    for (ValueId v = node.first_result; v < node.first_result + node.n_results; ++v) {
      if (viewed != kNone && shows_operand(graph, node, viewed)) {
        root_[v] = root_[viewed];
      } else {
        made_[v] = last_[v] = id;
        bytes_[v] = bytes_of(graph, v);
      }
    }
  }
  for (const ValueId v : graph.outputs) last_[root_[v]] = n;
  std::vector<int64_t> change(size_t{n} + 2, 0);
  for (ValueId v = 0; v < root_.size(); ++v) {
    if (made_[v] == kNone || last_[v] == n) continue;
    change[made_[v]] += static_cast<int64_t>(bytes_[v]);
    change[size_t{last_[v]} + 1] -= static_cast<int64_t>(bytes_[v]);
  }
  int64_t live = 0;
  for (NodeId id = 0; id < n; ++id) {
    live += change[id];
    if (static_cast<uint64_t>(live) <= peak_) continue;
    peak_ = static_cast<uint64_t>(live);
    fullest_ = id;
  }
}

// One round: the values that the fullest step gives up, and the nodes that make them again.
class Round {
 public:
  Round(Graph& graph, const Lives& lives, std::vector<std::optional<uint64_t>>& costs)
      : graph_(graph), lives_(lives), costs_(costs), peak_(lives.fullest()) {}
  // How many nodes run once more; 0: there is nothing to gain.
  size_t run(uint64_t excess);

 private:
  struct Candidate {
    ValueId root = kNone;
    NodeId at = kNone;  // the first use after the fullest step
    std::vector<ValueId> wanted;
    std::vector<NodeId> nodes;    // that make the wanted values
    std::vector<ValueId> reads;   // roots that these read
    uint64_t cost = 0, gain = 0;  // operations and bytes; bytes that the fullest step has less
  };
  std::optional<Candidate> candidate(ValueId root) const;
  bool add(Candidate& candidate, ValueId value) const;
  bool lives_at(NodeId at, ValueId root) const { return lives_.is_given(root) || lives_.last(root) >= at; }
  bool still_fits(const Candidate& candidate) const;
  void accept(const Candidate& candidate);
  std::vector<Argument> redirected(const Node& node, const std::unordered_map<ValueId, ValueId>& again);

  Graph& graph_;
  const Lives& lives_;
  std::vector<std::optional<uint64_t>>& costs_;  // per node; empty: it is not run twice
  NodeId peak_;
  std::unordered_set<ValueId> needed_, given_up_;                     // roots, by the accepted candidates
  std::vector<std::pair<NodeId, std::optional<uint64_t>>> inserted_;  // before which node, and the cost
};

// The nodes that make `value` from what lives where it is wanted.
bool Round::add(Candidate& c, ValueId value) const {
  const ValueId root = lives_.root(value);
  const NodeId id = graph_.value(value).node;
  if (id != kNone && std::find(c.nodes.begin(), c.nodes.end(), id) != c.nodes.end()) return true;
  if (root != c.root) {
    if (std::find(c.reads.begin(), c.reads.end(), root) != c.reads.end()) return true;
    const bool again = !lives_at(c.at, root) && costs_[id] && c.nodes.size() < kMostNodes;
    if (!again) {
      // What ended before the fullest step would live through it.
      const uint64_t longer = lives_.is_given(root) || lives_.last(root) >= peak_ ? 0 : lives_.bytes(root);
      if (longer >= c.gain) return false;
      c.gain -= longer;
      c.reads.push_back(root);
      return true;
    }
  }
  if (id == kNone || !costs_[id] || c.nodes.size() == kMostNodes) return false;
  c.nodes.push_back(id);
  c.cost += *costs_[id];
  bool whole = true;
  Graph::each_value(graph_.arguments(graph_.node(id)), [&](ValueId v) { whole = whole && add(c, v); });
  return whole;
}

std::optional<Round::Candidate> Round::candidate(ValueId root) const {
  if (lives_.is_given(root) || lives_.made(root) >= peak_ || lives_.last(root) <= peak_ ||
      lives_.last(root) == graph_.nodes().size() || lives_.bytes(root) == 0)
    return std::nullopt;
  Candidate c;
  c.root = root;
  c.gain = lives_.bytes(root);
  for (const Lives::Use& use : lives_.uses(root)) {
    if (use.node < peak_) continue;
    if (use.node == peak_) return std::nullopt;
    if (c.at == kNone) c.at = use.node;
    if (std::find(c.wanted.begin(), c.wanted.end(), use.value) == c.wanted.end()) c.wanted.push_back(use.value);
  }
  for (const ValueId value : c.wanted)
    if (!add(c, value)) return std::nullopt;
  std::sort(c.nodes.begin(), c.nodes.end());
  return c;
}

// The operands of an accepted candidate stay, and no other node may read the value that it gave up.
bool Round::still_fits(const Candidate& c) const {
  return !needed_.contains(c.root) &&
         std::none_of(c.reads.begin(), c.reads.end(), [&](ValueId root) { return given_up_.contains(root); });
}

std::vector<Argument> Round::redirected(const Node& node, const std::unordered_map<ValueId, ValueId>& again) {
  const auto moved = [&](ValueId v) {
    const auto found = v == kNone ? again.end() : again.find(v);
    return found == again.end() ? v : found->second;
  };
  std::vector<Argument> arguments;
  for (const Argument& a : graph_.arguments(node)) {
    std::vector<ValueId> list;
    if (a.is_values())
      for (const ValueId v : a.values()) list.push_back(moved(v));
    arguments.push_back(a.is_value() ? Argument::of(moved(a.value())) : a.is_values() ? graph_.list(list) : a);
  }
  return arguments;
}

void Round::accept(const Candidate& c) {
  std::unordered_map<ValueId, ValueId> again;
  for (const NodeId id : c.nodes) {
    const Node node = graph_.node(id);
    std::vector<std::vector<Dim>> dims;
    std::vector<Type> types;
    for (ValueId v = node.first_result; v < node.first_result + node.n_results; ++v)
      dims.emplace_back(graph_.dims(v).begin(), graph_.dims(v).end());
    for (uint32_t i = 0; i < node.n_results; ++i) {
      types.push_back(graph_.type(node.first_result + i));
      types.back().dims = dims[i];
    }
    const NodeId made = graph_.insert_node(c.at, *node.op, redirected(node, again), types, node.location,
                                           node.flags | Node::kRecomputed);
    inserted_.emplace_back(c.at, costs_[id]);
    for (uint32_t i = 0; i < node.n_results; ++i) again[node.first_result + i] = graph_.node(made).first_result + i;
  }
  for (const Lives::Use& use : lives_.uses(c.root))
    if (use.node > peak_) graph_.set_arguments(use.node, redirected(graph_.node(use.node), again));
  needed_.insert(c.reads.begin(), c.reads.end());
  given_up_.insert(c.root);
}

size_t Round::run(uint64_t excess) {
  std::vector<Candidate> candidates;
  for (ValueId v = 0; v < graph_.values().size(); ++v)
    if (lives_.root(v) == v)
      if (std::optional<Candidate> found = candidate(v)) candidates.push_back(std::move(*found));
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return static_cast<double>(a.cost) * static_cast<double>(b.gain) <
           static_cast<double>(b.cost) * static_cast<double>(a.gain);
  });
  uint64_t gained = 0;
  for (const Candidate& c : candidates) {
    if (gained >= excess) break;
    if (!still_fits(c)) continue;
    accept(c);
    gained += c.gain;
  }
  if (inserted_.empty()) return 0;
  // The costs in the order that `compact` gives the nodes.
  std::stable_sort(inserted_.begin(), inserted_.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<std::optional<uint64_t>> costs;
  auto next = inserted_.begin();
  for (NodeId id = 0; id < costs_.size(); ++id) {
    for (; next != inserted_.end() && next->first == id; ++next) costs.push_back(next->second);
    costs.push_back(costs_[id]);
  }
  costs_ = std::move(costs);
  graph_.compact();
  return inserted_.size();
}

// Operations and bytes, per node; empty where nobody knows them, or the node's function may do anything.
std::vector<std::optional<uint64_t>> costs_of(const Graph& graph) {
  std::vector<std::optional<uint64_t>> found;
  for (const NodeCost& cost : costs(graph, {}))
    found.push_back(cost.flops ? std::optional(*cost.flops + cost.bytes) : std::nullopt);
  return found;
}

// Each round gives up as much as would leave `target` bytes, until no more than `budget` live.
Recomputation approach(const std::shared_ptr<const Graph>& graph, uint64_t target, uint64_t budget,
                       std::vector<std::optional<uint64_t>> costs) {
  Lives lives(*graph);
  Recomputation best{graph, lives.peak(), lives.peak(), 0};
  const std::shared_ptr<Graph> changed = graph->clone();
  const size_t most = 2 * graph->nodes().size();
  for (size_t round = 0, nodes = 0; round < kMostRounds && lives.peak() > budget && nodes < most; ++round) {
    const size_t more = Round(*changed, lives, costs).run(lives.peak() - target);
    if (more == 0) break;
    nodes += more;
    lives = Lives(*changed);
    if (lives.peak() >= best.after) continue;
    std::shared_ptr<Graph> better = changed->clone();
    remove_dead_code(*better);  // a value that was computed long before its first use
    best = {std::move(better), best.before, lives.peak(), nodes};
  }
  return best;
}

}  // namespace

Recomputation recompute(std::shared_ptr<const Graph> graph, uint64_t budget) {
  if (!graph->symbols().empty()) return {graph};
  const uint64_t peak = Lives(*graph).peak();
  Recomputation best{graph, peak, peak, 0};
  if (peak <= budget) return best;
  const std::vector<std::optional<uint64_t>> costs = costs_of(*graph);
  // A round takes the best candidate for one step. If that leads to a dead end, a lower budget may succeed.
  for (const uint64_t target : {budget, budget / 4 * 3, budget / 2, uint64_t{0}}) {
    Recomputation found = approach(graph, target, budget, costs);
    if (found.after < best.after) best = std::move(found);
    if (best.after <= budget) break;
  }
  return best;
}

}  // namespace backplane::core::graph
