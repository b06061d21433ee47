// A graph of the contract as C++ reads it, for a backend's compiler: arrays by their strides, dims and arguments as
// spans.
//
// Not the contract: header-only sugar over backplane/abi. Borrows the graph; every number of a value is checked once,
// when the view is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backplane/abi/graph.h"
#include "backplane/error.hpp"

namespace backplane::plugin {

using Dims = std::span<const int64_t>;

class GraphView {
 public:
  explicit GraphView(const bp_graph* graph) : graph_(graph) {
    for (uint32_t i = 0; i < n_nodes(); ++i) {
      for (uint32_t k = 0; k < node(i).n_results; ++k) check(node(i).results[k]);
      for (const bp_value& arg : args(i)) {
        if (arg.tag == BP_TAG_REF) check(arg.u.i);
        if (arg.tag != BP_TAG_REF_LIST) continue;
        for (uint32_t k = 0; k < arg.count; ++k) check(arg.u.ints[k] < 0 ? 0 : arg.u.ints[k]);
      }
    }
    for (const uint32_t value : inputs()) check(value);
    for (const uint32_t value : outputs()) check(value);
  }

  uint32_t n_values() const { return graph_->values.count; }
  uint32_t n_nodes() const { return graph_->nodes.count; }
  const bp_graph_value& value(int64_t i) const { return at<bp_graph_value>(graph_->values, i); }
  const bp_graph_node& node(uint32_t i) const { return at<bp_graph_node>(graph_->nodes, i); }
  // What a call may find wrong in its data (BP_FAULT_*), and what a compiler may do with it (BP_REGION_*, BP_JOIN_*).
  // Of a host that does not say: any, and nothing.
#if BP_TARGET_MINOR >= 3
  uint64_t faults(uint32_t i) const { return states_facts() ? node(i).faults : uint64_t{BP_FAULTS_UNSTATED}; }
  uint16_t region(uint32_t i) const { return states_facts() ? node(i).region : uint16_t{BP_REGION_NONE}; }
  uint16_t join(uint32_t i) const { return states_facts() ? node(i).join : uint16_t{BP_JOIN_NONE}; }
#else
  uint64_t faults(uint32_t) const { return BP_FAULTS_UNSTATED; }
  uint16_t region(uint32_t) const { return BP_REGION_NONE; }
  uint16_t join(uint32_t) const { return BP_JOIN_NONE; }
#endif
  Dims dims(int64_t i) const { return {value(i).dims, static_cast<size_t>(value(i).ndim)}; }
  std::span<const bp_value> args(uint32_t i) const { return {node(i).args, node(i).n_args}; }
  std::span<const uint32_t> inputs() const { return {graph_->inputs, graph_->n_inputs}; }
  std::span<const uint32_t> outputs() const { return {graph_->outputs, graph_->n_outputs}; }

  // read(number) for every value that a node reads.
  template <class Read>
  void for_each_read(uint32_t i, Read&& read) const {
    for (const bp_value& arg : args(i)) {
      if (arg.tag == BP_TAG_REF) read(arg.u.i);
      if (arg.tag != BP_TAG_REF_LIST) continue;
      for (uint32_t k = 0; k < arg.count; ++k)
        if (arg.u.ints[k] >= 0) read(arg.u.ints[k]);
    }
  }

 private:
#if BP_TARGET_MINOR >= 3
  bool states_facts() const {
    return graph_->nodes.stride >= offsetof(bp_graph_node, join) + sizeof(bp_graph_node::join);
  }
#endif
  template <class T>
  static const T& at(const bp_array& array, int64_t i) {
    return *reinterpret_cast<const T*>(static_cast<const char*>(array.data) + i * array.stride);
  }
  void check(int64_t value) const {
    BP_CHECK(value >= 0 && value < n_values(), VALUE, "a graph for a compiler names value ", value, " of ", n_values());
  }
  const bp_graph* graph_;
};

}  // namespace backplane::plugin
