// Parts of a graph that backends' compilers claim: each is compiled, and runs as one kernel does.
//
// A compiler says which nodes it claims (`partition`); what it leaves runs op by op. Regions are made for one set of
// sizes. A region holds a lease on its backend's plugin.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backplane/abi/extensions.h"
#include "graph/graph.hpp"
#include "memory/device.hpp"

namespace backplane::core::graph {

class Region {
 public:
  Region(Device& device, const bp_extension_compiler& compiler, std::vector<NodeId> nodes);
  ~Region();
  Region(const Region&) = delete;

  // In the graph's order: what it reads from outside, and what others read of it.
  std::vector<ValueId> inputs, outputs;
  const std::vector<NodeId>& nodes() const { return nodes_; }
  Device& device() const { return device_; }
  const bp_op_info& info() const { return info_; }
  PluginRecord* owner() const { return device_.backend->owner; }

  bool compile(class Crossing& crossing, const Graph& graph);  // false: the compiler refused
  // May the output be given the input's memory?
  bool may_share(int32_t out, int32_t in) const;
  // A kernel, whose frame's context is the region.
  static bp_status BP_CALL run(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                               int32_t n_outs);

 private:
  Device& device_;
  const bp_extension_compiler& compiler_;
  std::vector<NodeId> nodes_;
  bp_executable* executable_ = nullptr;
  std::string name_;
  bp_op_info info_{};
};

struct Partition {
  std::vector<uint32_t> region_of;   // per node; kNone: op by op
  std::vector<std::string> reasons;  // per node op by op: why, where a compiler said it
  std::vector<std::shared_ptr<Region>> regions;
  // What runs, in an order in which it can: a node, or the region of that node.
  std::vector<NodeId> order;
};

// Of the graph's nodes, with the values of its symbols.
Partition partition(const Graph& graph, std::span<const int64_t> symbols);

}  // namespace backplane::core::graph
