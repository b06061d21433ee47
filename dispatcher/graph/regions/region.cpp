#include "graph/regions/region.hpp"

#include <algorithm>
#include <mutex>
#include <queue>
#include <set>

#include "backplane/log.hpp"
#include "graph/ordered_nodes.hpp"
#include "graph/passes/dead_code.hpp"
#include "graph/regions/crossing.hpp"
#include "graph/regions/kept_executables.hpp"
#include "graph/regions/region_split.hpp"
#include "memory/process/epoch.hpp"
#include "record/host_table.hpp"

namespace backplane::core::graph {
namespace {

// Per value: does a node outside of its maker's group read it, or does the graph give it?
std::vector<bool> escaping(const Graph& graph, const std::vector<NodeId>& groups) {
  std::vector<bool> escapes(graph.values().size(), false);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (graph.is_erased(id)) continue;
    Graph::each_value(graph.arguments(graph.node(id)), [&](ValueId v) {
      const NodeId maker = graph.value(v).node;
      if (maker != kNone && groups[maker] != groups[id]) escapes[v] = true;
    });
  }
  for (const ValueId v : graph.outputs) escapes[v] = true;
  return escapes;
}

std::vector<ValueId> outputs_of(const Graph& graph, std::span<const NodeId> nodes, const std::vector<bool>& escapes) {
  std::vector<ValueId> outputs;
  for (const NodeId id : nodes)
    for (uint32_t i = 0; i < graph.node(id).n_results; ++i)
      if (escapes[graph.node(id).first_result + i]) outputs.push_back(graph.node(id).first_result + i);
  return outputs;
}

StaticLock region_names_lock{LockRank::kPool};

// Errors of a region's work name it when it may be gone. There are few: they say how many nodes a region has.
const char* lasting(const std::string& name) {
  static std::set<std::string>& names = *new std::set<std::string>;
  std::lock_guard guard(region_names_lock);
  return names.insert(name).first->c_str();
}

}  // namespace

Region::Region(const Graph& graph, std::span<const int64_t> symbols, std::vector<NodeId> nodes, Device& device,
               std::vector<ValueId> outputs, std::string name)
    : device_(device),
      compiler_(device.backend->extensions.compiler),
      name_(std::move(name)),
      nodes_(std::move(nodes)),
      outputs_(std::move(outputs)),
      generation_(device.generation) {
  const CrossingGraph crossing(graph, symbols, nodes_, outputs_);
  inputs_ = crossing.inputs();
  if (!device.synchronous()) constants_ = crossing.constants();
  info_.header = BP_HEADER(bp_op_info);
  info_.name = lasting(name_);
  info_.op = BP_NO_OP;
  frame_.header = BP_HEADER(bp_frame);
  frame_.host = &host_table;
  frame_.op = &info_;
  frame_.context = device.backend->def.context;
  frame_.backend = device.backend->index;
  frame_.ordinal = device.ordinal;
  frame_.keys = ~uint64_t{0};
  frame_.compute = BP_DTYPE_NONE;
  bp_executable_info info{};
  info.header = BP_HEADER(bp_executable_info);
  bp_executable* executable = nullptr;
  const bp_status status = find_or_compile(device, crossing.get(), &info, &executable);
  if (status != BP_OK) throw Error(status, name_ + " on " + name_of(device) + ": " + take_cause());
  BP_CHECK(executable, INTERNAL, name_, ": the compiler of ", device.backend->name, " gave no executable");
  executable_ = std::make_shared<HeldExecutable>(device, executable);
  handle_ = executable;
  capturable_ = info.flags & BP_EXECUTABLE_CAPTURABLE;
}

Region::~Region() {
  if (!uses_.empty()) hold_until_done(device_, std::move(uses_), executable_);
}

HeldExecutable::HeldExecutable(Device& device, bp_executable* executable) : device_(device), executable_(executable) {
  lease(device.backend->owner, LeaseKind::kGraph);
}

HeldExecutable::~HeldExecutable() {
  {
    CallGuard guard;
    device_.backend->extensions.compiler->destroy(device_.backend->def.context, executable_);
  }
  unlease(device_.backend->owner, LeaseKind::kGraph);
}

bool Region::may_share(size_t output, size_t input) const {
  return BP_HAS(compiler_, bp_extension_compiler, may_share) && compiler_->may_share &&
         compiler_->may_share(frame_.context, handle_, static_cast<int32_t>(output), static_cast<int32_t>(input)) == 1;
}

namespace {

// Which nodes go together: a number per node, from the first of its unit.
class Partition {
 public:
  Partition(const Graph& graph, std::span<const int64_t> symbols) : graph_(graph), symbols_(symbols) {
    leader_.resize(graph.nodes().size());
    dissolve();
  }
  void ask_all(std::vector<std::string>* reasons);
  void split_waiting();
  std::vector<uint32_t> ranks() const;
  bool order(std::vector<NodeId>& leaders) const;
  void dissolve() {
    members_.clear();
    for (NodeId id = 0; id < leader_.size(); ++id) leader_[id] = id;
  }
  std::vector<Unit> units();

 private:
  void ask(Device& device, std::vector<std::string>* reasons);
  void log_partition(const Device& device, const std::vector<NodeId>& nodes, const std::vector<uint32_t>& regions,
                     const std::vector<const char*>& said) const;
  std::shared_ptr<Region> compile(const std::vector<NodeId>& nodes, Device& device, std::vector<ValueId> outputs);

  const Graph& graph_;
  std::span<const int64_t> symbols_;
  std::vector<NodeId> leader_;
  std::vector<std::pair<std::vector<NodeId>, Device*>> members_;
};

void log(const std::string& message) { host_table.log(BP_LOG_WARNING, message.c_str()); }

// The compilers of all devices of the graph. `reasons`, per node, if given: why it is left alone.
void Partition::ask_all(std::vector<std::string>* reasons) {
  std::vector<Device*> devices;
  for (const Value& value : graph_.values()) {
    const bp_device at = value.device;
    if (!devices.empty() && devices.back()->backend->index == at.backend && devices.back()->ordinal == at.ordinal)
      continue;
    Device* device = &device_at(at);
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
  }
  for (Device* device : devices) ask(*device, reasons);
}

// BACKPLANE_LOG=fuse: the region of each node, or why it has none.
void Partition::log_partition(const Device& device, const std::vector<NodeId>& nodes,
                              const std::vector<uint32_t>& regions, const std::vector<const char*>& said) const {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const OpEntry* op = graph_.node(nodes[i]).op;
    const std::string node = "node " + std::to_string(nodes[i]) + " (" +
                             (op ? std::string(op->record->name) : "a function") + ") on " + name_of(device) + ": ";
    const bool in_region = regions[i] != BP_NO_REGION;
    log_line(LogTopic::kFuse, node + (in_region ? "region " + std::to_string(regions[i])
                                      : said[i] ? std::string("no region: ") + said[i]
                                                : std::string("no region")));
  }
}

void Partition::ask(Device& device, std::vector<std::string>* reasons) {
  const bp_extension_compiler* compiler = device.backend->extensions.compiler;
  if (!compiler) return;
  // Of values on this device alone, which no other compiler has claimed.
  std::vector<NodeId> nodes;
  for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
    const Node& node = graph_.node(id);
    bool here = !graph_.is_erased(id) && node.n_results > 0;
    const auto on_device = [&](ValueId v) {
      const bp_device at = graph_.value(v).device;
      here = here && at.backend == device.backend->index && at.ordinal == device.ordinal;
    };
    Graph::each_value(graph_.arguments(node), on_device);
    for (uint32_t i = 0; i < node.n_results; ++i) on_device(node.first_result + i);
    if (here) nodes.push_back(id);
  }
  if (nodes.empty()) return;
  std::vector<NodeId> groups(graph_.nodes().size(), kNone);
  for (const NodeId id : nodes) groups[id] = 0;
  const CrossingGraph crossing(graph_, symbols_, nodes, outputs_of(graph_, nodes, escaping(graph_, groups)));
  std::vector<uint32_t> regions(nodes.size(), BP_NO_REGION);
  const bool logged = logs(LogTopic::kFuse);
  std::vector<const char*> said(reasons || logged ? nodes.size() : 0, nullptr);
  uint32_t n_regions = 0;
  take_error();
  const bp_status status = compiler->partition(device.backend->def.context, &host_table, id_of(device), &crossing.get(),
                                               regions.data(), &n_regions, said.empty() ? nullptr : said.data());
  if (status != BP_OK) return log("the compiler of " + name_of(device) + " claims nothing: " + take_cause());
  for (size_t i = 0; reasons && i < said.size(); ++i)
    if (said[i]) (*reasons)[nodes[i]] = said[i];
  if (logged) log_partition(device, nodes, regions, said);
  std::vector<std::vector<NodeId>> claimed(std::min<size_t>(n_regions, nodes.size()));
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (regions[i] < claimed.size())
      claimed[regions[i]].push_back(nodes[i]);
    else if (regions[i] != BP_NO_REGION)
      log("the compiler of " + name_of(device) + " puts node " + std::to_string(i) + " into region " +
          std::to_string(regions[i]) + " of " + std::to_string(n_regions) + "; it runs by itself");
  }
  for (std::vector<NodeId>& region : claimed) {
    if (region.empty()) continue;
    for (const NodeId id : region) leader_[id] = region[0];
    members_.emplace_back(std::move(region), &device);
  }
}

// A part of one node runs as that node.
void Partition::split_waiting() {
  std::vector<NodeId> runs_at(graph_.nodes().size());
  for (NodeId id = 0; id < runs_at.size(); ++id) runs_at[id] = id;
  for (const auto& [nodes, device] : members_)
    for (const NodeId id : nodes) runs_at[id] = nodes.back();
  RegionSplit split(graph_, symbols_, std::move(runs_at));
  std::vector<std::pair<std::vector<NodeId>, Device*>> parts;
  for (const auto& [nodes, device] : members_) {
    std::vector<std::vector<NodeId>> found = split.parts(nodes);
    const bool whole = found.size() == 1;
    for (std::vector<NodeId>& part : found) {
      for (const NodeId id : part) leader_[id] = part[0];
      if (whole || part.size() > 1) parts.emplace_back(std::move(part), device);
    }
  }
  members_ = std::move(parts);
}

// Which units come first: those that begin something in the background, with all that they need. An ordered node begins
// something if only ordered nodes read its results. Per unit its rank; the last rank: it need not come early.
std::vector<uint32_t> Partition::ranks() const {
  const std::vector<NodeId> ordered = ordered_nodes(graph_);
  const size_t n = graph_.nodes().size();
  std::vector<uint32_t> ranks(n, static_cast<uint32_t>(ordered.size()));
  if (ordered.size() < 2) return ranks;
  std::vector<bool> is_read(n, false), is_ordered(n, false), is_read_by_others(n, false);
  for (const NodeId id : ordered) is_ordered[id] = true;
  for (NodeId id = 0; id < n; ++id) {
    if (graph_.is_erased(id)) continue;
    Graph::each_value(graph_.arguments(graph_.node(id)), [&](ValueId v) {
      const NodeId maker = graph_.value(v).node;
      if (maker == kNone) return;
      is_read[maker] = true;
      if (!is_ordered[id]) is_read_by_others[maker] = true;
    });
  }
  for (const ValueId v : graph_.outputs)
    if (graph_.value(v).node != kNone) is_read_by_others[graph_.value(v).node] = true;
  for (uint32_t rank = 0; rank < ordered.size(); ++rank) {
    const NodeId begins = ordered[rank];
    if (!is_read[begins] || is_read_by_others[begins]) continue;
    const ValueId given = graph_.node(begins).first_result;
    const std::vector<bool> needed = needed_nodes(graph_, {&given, 1});
    for (NodeId id = 0; id < n; ++id)
      if (needed[id]) ranks[leader_[id]] = std::min(ranks[leader_[id]], rank);
  }
  return ranks;
}

// Units by rank, then by the smallest node that is ready; false: some wait for each other.
bool Partition::order(std::vector<NodeId>& leaders) const {
  const size_t n = graph_.nodes().size();
  std::vector<std::vector<NodeId>> readers(n);
  std::vector<uint32_t> waits(n, 0);
  for (NodeId id = 0; id < n; ++id) {
    if (graph_.is_erased(id)) continue;
    Graph::each_value(graph_.arguments(graph_.node(id)), [&](ValueId v) {
      const NodeId maker = graph_.value(v).node;
      if (maker == kNone || leader_[maker] == leader_[id]) return;
      readers[leader_[maker]].push_back(leader_[id]);
      ++waits[leader_[id]];
    });
  }
  NodeId before = kNone;
  for (const NodeId id : ordered_nodes(graph_)) {
    if (before != kNone && leader_[before] != leader_[id]) {
      readers[leader_[before]].push_back(leader_[id]);
      ++waits[leader_[id]];
    }
    before = id;
  }
  const std::vector<uint32_t> rank_of = ranks();
  using Ready = std::pair<uint32_t, NodeId>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  size_t units = 0;
  for (NodeId id = 0; id < n; ++id) {
    if (graph_.is_erased(id) || leader_[id] != id) continue;
    ++units;
    if (waits[id] == 0) ready.push({rank_of[id], id});
  }
  for (leaders.clear(); !ready.empty();) {
    const NodeId next = ready.top().second;
    ready.pop();
    leaders.push_back(next);
    for (const NodeId reader : readers[next])
      if (--waits[reader] == 0) ready.push({rank_of[reader], reader});
  }
  return leaders.size() == units;
}

// nullptr where that fails.
std::shared_ptr<Region> Partition::compile(const std::vector<NodeId>& nodes, Device& device,
                                           std::vector<ValueId> outputs) {
  if (outputs.empty()) return nullptr;
  try {
    return std::make_shared<Region>(graph_, symbols_, nodes, device, std::move(outputs),
                                    "region of " + std::to_string(nodes.size()) + " nodes");
  } catch (const Error& error) {
    log("graph " + graph_.name + ": " + error.what() + "; it runs node by node");
    return nullptr;
  }
}

std::vector<Unit> Partition::units() {
  std::vector<NodeId> leaders;
  if (!order(leaders)) {
    log("graph " + graph_.name + ": a compiler claims parts that wait for each other; it runs node by node");
    dissolve();
    order(leaders);
  }
  const std::vector<bool> escapes = escaping(graph_, leader_);
  std::vector<std::shared_ptr<Region>> regions(graph_.nodes().size());
  std::vector<const std::vector<NodeId>*> parts(graph_.nodes().size(), nullptr);
  for (const auto& [nodes, device] : members_) {
    parts[nodes[0]] = &nodes;
    regions[nodes[0]] = compile(nodes, *device, outputs_of(graph_, nodes, escapes));
  }
  std::vector<Unit> units;
  for (const NodeId leader : leaders) {
    if (!parts[leader]) {
      units.push_back({leader, nullptr});
    } else if (regions[leader]) {
      units.push_back({kNone, regions[leader]});
    } else {
      for (const NodeId id : *parts[leader]) units.push_back({id, nullptr});
    }
  }
  return units;
}

}  // namespace

std::vector<Unit> partition(const Graph& graph, std::span<const int64_t> symbols, bool use_compilers) {
  Partition partition(graph, symbols);
  if (use_compilers) {
    partition.ask_all(nullptr);
    partition.split_waiting();
  }
  return partition.units();
}

std::vector<std::string> reasons_left_alone(const Graph& graph, std::span<const int64_t> symbols) {
  std::vector<std::string> reasons(graph.nodes().size());
  Partition(graph, symbols).ask_all(&reasons);
  return reasons;
}

}  // namespace backplane::core::graph
