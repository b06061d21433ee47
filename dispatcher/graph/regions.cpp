#include "graph/regions.hpp"

#include <algorithm>
#include <functional>
#include <queue>

#include "graph/crossing.hpp"
#include "record/host_table.hpp"

namespace backplane::core::graph {
namespace {

constexpr uint32_t kVersion = 1;  // of the extension

const bp_extension_compiler* compiler_of(const Device& device) {
  const bp_backend_def& def = device.backend->def;
  if (!BP_HAS(&def, bp_backend_def, extension) || def.extension == nullptr) return nullptr;
  const auto* compiler =
      static_cast<const bp_extension_compiler*>(def.extension(def.context, BP_EXTENSION_COMPILER, kVersion));
  const bool whole = compiler != nullptr && BP_HAS(compiler, bp_extension_compiler, destroy) && compiler->partition &&
                     compiler->compile && compiler->execute && compiler->destroy;
  return whole ? compiler : nullptr;
}

// The devices of the graph's values, each once.
std::vector<Device*> devices_of(const Graph& graph) {
  std::vector<Device*> devices;
  bp_device last{kNone, -1};
  for (const Value& value : graph.values()) {
    if (value.device.backend == last.backend && value.device.ordinal == last.ordinal) continue;
    last = value.device;
    Device* device = &device_at(last);
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
  }
  return devices;
}

class Claims {
 public:
  Claims(const Graph& graph, std::span<const int64_t> symbols) : graph_(graph), crossing_(graph, symbols) {
    result_.region_of.assign(graph.nodes().size(), kNone);
    result_.reasons.resize(graph.nodes().size());
    for (NodeId id = 0; id < graph.nodes().size(); ++id)
      if (!graph.is_erased(id)) nodes_.push_back(id);
    for (const Input& input : graph.inputs()) inputs_.push_back(input.value);
  }

  Partition run() {
    for (Device* device : devices_of(graph_))
      if (const bp_extension_compiler* compiler = compiler_of(*device)) claim(*device, *compiler);
    find_edges();
    for (uint32_t r = 0; r < result_.regions.size(); ++r)
      if (!result_.regions[r]->compile(crossing_, graph_)) give_up(r, "the compiler refused the region");
    if (!find_order()) {
      host_table.log(BP_LOG_WARNING, "a compiler claimed regions that wait for one another; the graph runs op by op");
      for (uint32_t r = 0; r < result_.regions.size(); ++r) give_up(r, "its region waits for another one");
      find_order();
    }
    return std::move(result_);
  }

 private:
  void claim(Device& device, const bp_extension_compiler& compiler) {
    std::vector<uint32_t> regions(nodes_.size(), BP_NO_REGION);
    std::vector<const char*> reasons(nodes_.size(), nullptr);
    uint32_t count = 0;
    const bp_graph* graph = crossing_.of(nodes_, inputs_, graph_.outputs);
    if (compiler.partition(device.backend->def.context, &host_table, id_of(device), graph, regions.data(), &count,
                           reasons.data()) != BP_OK) {
      host_table.log(BP_LOG_WARNING, (device.backend->name + "'s compiler: " + host_table.get_error()).c_str());
      return;
    }
    std::vector<std::vector<NodeId>> members(std::min<size_t>(count, nodes_.size()));
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (result_.region_of[nodes_[i]] != kNone) continue;
      if (regions[i] < members.size())
        members[regions[i]].push_back(nodes_[i]);
      else if (reasons[i] != nullptr && result_.reasons[nodes_[i]].empty())
        result_.reasons[nodes_[i]] = device.backend->name + ": " + reasons[i];
    }
    for (auto& nodes : members) {
      if (nodes.empty()) continue;
      for (const NodeId id : nodes) result_.region_of[id] = static_cast<uint32_t>(result_.regions.size());
      result_.regions.push_back(std::make_shared<Region>(device, compiler, std::move(nodes)));
    }
  }

  // What regions read from outside, and what others read of them.
  void find_edges() {
    std::vector<bool> read_outside(graph_.values().size(), false);
    std::vector<uint32_t> reader(graph_.values().size(), kNone);  // the region that has noted it last
    for (const ValueId v : graph_.outputs) read_outside[v] = true;
    for (const NodeId id : nodes_) {
      const uint32_t here = result_.region_of[id];
      Graph::each_value(graph_.arguments(graph_.node(id)), [&](ValueId v) {
        const NodeId made_by = graph_.value(v).node;
        if (made_by != kNone && result_.region_of[made_by] == here && here != kNone) return;
        read_outside[v] = true;
        if (here == kNone || reader[v] == here) return;
        reader[v] = here;
        auto& inputs = result_.regions[here]->inputs;
        if (std::find(inputs.begin(), inputs.end(), v) == inputs.end()) inputs.push_back(v);
      });
    }
    for (const auto& region : result_.regions)
      for (const NodeId id : region->nodes())
        for (uint32_t i = 0; i < graph_.node(id).n_results; ++i)
          if (read_outside[graph_.node(id).first_result + i])
            region->outputs.push_back(graph_.node(id).first_result + i);
  }

  void give_up(uint32_t region, const char* why) {
    for (const NodeId id : result_.regions[region]->nodes()) {
      result_.region_of[id] = kNone;
      result_.reasons[id] = why;
    }
  }

  // The first node of what a node runs with.
  NodeId unit(NodeId id) const {
    const uint32_t region = result_.region_of[id];
    return region == kNone ? id : result_.regions[region]->nodes().front();
  }

  // As the graph has it, but that a region waits for all that it reads. False: there is no such order.
  bool find_order() {
    std::vector<uint32_t> waits(graph_.nodes().size(), 0);
    std::vector<std::vector<NodeId>> readers(graph_.nodes().size());
    size_t units = 0;
    for (const NodeId id : nodes_) {
      units += unit(id) == id;
      Graph::each_value(graph_.arguments(graph_.node(id)), [&](ValueId v) {
        const NodeId made_by = graph_.value(v).node;
        if (made_by == kNone || unit(made_by) == unit(id)) return;
        readers[unit(made_by)].push_back(unit(id));
        ++waits[unit(id)];
      });
    }
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
    for (const NodeId id : nodes_)
      if (unit(id) == id && waits[id] == 0) ready.push(id);
    result_.order.clear();
    while (!ready.empty()) {
      const NodeId id = ready.top();
      ready.pop();
      result_.order.push_back(id);
      for (const NodeId reader : readers[id])
        if (--waits[reader] == 0) ready.push(reader);
    }
    return result_.order.size() == units;
  }

  const Graph& graph_;
  Crossing crossing_;
  Partition result_;
  std::vector<NodeId> nodes_;
  std::vector<ValueId> inputs_;
};

}  // namespace

Region::Region(Device& device, const bp_extension_compiler& compiler, std::vector<NodeId> nodes)
    : device_(device), compiler_(compiler), nodes_(std::move(nodes)) {
  lease(owner(), LeaseKind::kHandle);
}

Region::~Region() {
  if (executable_ != nullptr) compiler_.destroy(device_.backend->def.context, executable_);
  unlease(owner(), LeaseKind::kHandle);
}

bool Region::compile(Crossing& crossing, const Graph& graph) {
  const OpEntry& last = *graph.node(nodes_.back()).op;
  name_ = "a region of " + std::to_string(nodes_.size()) + " nodes, with " + last.record->def.name;
  info_ = {BP_HEADER(bp_op_info), name_.c_str(), last.handle, 0, nullptr};
  bp_executable_info info{BP_HEADER(bp_executable_info), 0};
  const bp_status status = compiler_.compile(device_.backend->def.context, &host_table, id_of(device_),
                                             crossing.of(nodes_, inputs, outputs), &info, &executable_);
  if (status == BP_OK) return true;
  executable_ = nullptr;
  host_table.log(BP_LOG_WARNING, (device_.backend->name + "'s compiler: " + host_table.get_error()).c_str());
  return false;
}

bool Region::may_share(int32_t out, int32_t in) const {
  return BP_HAS(&compiler_, bp_extension_compiler, may_share) && compiler_.may_share != nullptr &&
         compiler_.may_share(device_.backend->def.context, executable_, out, in) != 0;
}

bp_status BP_CALL Region::run(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                              int32_t n_outs) {
  const Region& region = *static_cast<const Region*>(frame->context);
  bp_frame inner = *frame;
  inner.context = region.device_.backend->def.context;
  return region.compiler_.execute(&inner, region.executable_, args, n_args, outs, n_outs);
}

}  // namespace backplane::core::graph
