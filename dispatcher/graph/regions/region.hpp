// Parts of a graph that a backend's compiler runs in place of kernels: claiming them, compiling, and the executables.
#pragma once

#include <memory>
#include <string>

#include "graph/graph.hpp"
#include "memory/devices/device.hpp"

namespace backplane::core::graph {

// What a compiler made. Ends when the last region that runs it, recording that replays it and work that uses it have.
// Holds a lease on the backend's plugin.
class HeldExecutable {
 public:
  HeldExecutable(Device& device, bp_executable* executable);
  ~HeldExecutable();
  HeldExecutable(const HeldExecutable&) = delete;

 private:
  Device& device_;
  bp_executable* const executable_;
};

// A compiled part of a graph.
class Region {
 public:
  // `outputs`: what others read of the nodes' results; `name`: for messages. Throws Error where the compiler gives it
  // up.
  Region(const Graph& graph, std::span<const int64_t> symbols, std::vector<NodeId> nodes, Device& device,
         std::vector<ValueId> outputs, std::string name);
  ~Region();
  Region(const Region&) = delete;

  const std::vector<NodeId>& nodes() const { return nodes_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  Device& device() const { return device_; }
  const std::string& name() const { return name_; }
  const bp_frame& frame() const { return frame_; }  // but for stream and ticket
  bp_status execute(const bp_frame& frame, const bp_value* inputs, int32_t n_inputs, bp_value* outs,
                    int32_t n_outs) const {
    return compiler_->execute(&frame, handle_, inputs, n_inputs, outs, n_outs);
  }
  bool may_share(size_t output, size_t input) const;
  const std::shared_ptr<HeldExecutable>& executable() const { return executable_; }
  bool capturable() const { return capturable_; }
  // Of the device, when it was compiled.
  uint32_t generation() const { return generation_; }
  // The memory of constants that the compiler knows, which every execution reads beside its inputs.
  const std::vector<bp_storage*>& constants() const { return constants_; }
  // Under the device's lock: work that runs the executable.
  void note_use(const StorageUse& use) const { note_latest(uses_, use); }

 private:
  Device& device_;
  const bp_extension_compiler* compiler_;
  std::string name_;
  std::vector<NodeId> nodes_;
  std::vector<ValueId> inputs_, outputs_;
  bp_op_info info_{};
  bp_frame frame_{};
  std::vector<bp_storage*> constants_;  // the graph's
  std::shared_ptr<HeldExecutable> executable_;
  bp_executable* handle_ = nullptr;
  const uint32_t generation_;
  bool capturable_ = false;
  mutable std::vector<StorageUse> uses_;  // the latest on each stream
};

// What runs as one: a node, or a region.
struct Unit {
  NodeId node = kNone;
  std::shared_ptr<Region> region;
};

// Asks the compilers of the graph's devices, and gives the units in an order in which they run. What a compiler claims
// in vain (a part that cannot run as one, or that it does not compile after all) is logged, and runs node by node.
std::vector<Unit> partition(const Graph& graph, std::span<const int64_t> symbols, bool use_compilers);

// For reports, per node: why the compiler of its device leaves it alone; empty: it does not, or does not say.
std::vector<std::string> reasons_left_alone(const Graph& graph, std::span<const int64_t> symbols);

}  // namespace backplane::core::graph
