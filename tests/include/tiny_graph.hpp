// A graph of the contract written down by hand, and rules over ops of its own: what tests of compilers' headers give
// them.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "backplane/plugin/fused_program.hpp"

namespace backplane::plugin {

class TinyGraph {
 public:
  int64_t value(bp_dtype dtype, std::vector<int64_t> dims) {
    const auto& kept = dims_.emplace_back(std::move(dims));
    values_.push_back({dtype, 0, static_cast<int32_t>(kept.size()), kept.data(), {2, 0}, nullptr});
    return static_cast<int64_t>(values_.size()) - 1;
  }
  int64_t constant(bp_tensor& tensor) {
    const bp_dtype dtype = tensor.dtype;
    const int64_t made = value(dtype, {tensor.dl.shape, tensor.dl.shape + tensor.dl.ndim});
    values_.back().constant = &tensor;
    return made;
  }
  int64_t input(bp_dtype dtype, std::vector<int64_t> dims) {
    inputs_.push_back(static_cast<uint32_t>(value(dtype, std::move(dims))));
    return inputs_.back();
  }
  int64_t node(const char* op, std::vector<bp_value> args, bp_dtype compute, bp_dtype dtype,
               std::vector<int64_t> dims) {
    const int64_t made = value(dtype, std::move(dims));
    const auto& kept = args_.emplace_back(std::move(args));
    const auto& result = results_.emplace_back(static_cast<uint32_t>(made));
    const std::string_view name = op;
    const uint16_t region = name == "t::cast"   ? BP_REGION_CAST
                            : name == "t::view" ? BP_REGION_VIEW
                            : name == "t::sum"  ? BP_REGION_REDUCE
                                                : BP_REGION_ELEMENTWISE;
    const uint16_t join = region == BP_REGION_REDUCE ? BP_JOIN_SUM : BP_JOIN_NONE;
    const uint64_t faults = name == "t::divide" ? BP_FAULT_DIVISION : BP_FAULT_NONE;
    nodes_.push_back({op, 0, 1, kept.data(), &result, static_cast<uint32_t>(kept.size()), 1, compute, 0, 0,
                      ~uint64_t{0}, 0, nullptr, faults, region, join, 0});
    return made;
  }
  bp_graph_node& at(size_t i) { return nodes_[i]; }
  void recompute(std::initializer_list<size_t> nodes) {
    for (const size_t i : nodes) nodes_[i].flags |= BP_GRAPH_NODE_RECOMPUTED;
  }
  const bp_graph* crossing(std::vector<uint32_t> outputs) {
    outputs_ = std::move(outputs);
    graph_ = {BP_HEADER(bp_graph),
              {values_.data(), static_cast<uint32_t>(values_.size()), sizeof(bp_graph_value)},
              {nodes_.data(), static_cast<uint32_t>(nodes_.size()), sizeof(bp_graph_node)},
              inputs_.data(),
              outputs_.data(),
              static_cast<uint32_t>(inputs_.size()),
              static_cast<uint32_t>(outputs_.size())};
    return &graph_;
  }

 private:
  std::deque<std::vector<int64_t>> dims_;
  std::deque<std::vector<bp_value>> args_;
  std::deque<uint32_t> results_;
  std::vector<bp_graph_value> values_;
  std::vector<bp_graph_node> nodes_;
  std::vector<uint32_t> inputs_, outputs_;
  bp_graph graph_{};
};

inline bp_value ref(int64_t value) {
  bp_value made{};
  made.tag = BP_TAG_REF;
  made.u.i = value;
  return made;
}
inline bp_value number(double value) {
  bp_value made{};
  made.tag = BP_TAG_FLOAT;
  made.u.f = value;
  return made;
}

inline const FusedOps kOps{{{{"t::plus", BP_FLOAT32}, {"plus_f", 2, BP_FLOAT32}},
                            {{"t::less", BP_FLOAT32}, {"less_f", 2, BP_BOOL}},
                            {{"t::divide", BP_INT32}, {"divide_i", 2, BP_INT32}},
                            {{"t::choose", BP_FLOAT32}, {"choose_f", 3, BP_FLOAT32}}}};
inline constexpr bp_device kHere{2, 0};

}  // namespace backplane::plugin
