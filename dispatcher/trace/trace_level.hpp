// Tracing as a level: it takes every call, infers what the call would give by the op's rules, and writes a node.
//
// A traced tensor is a wrapper whose inner tensor is a handle without data; which value of the graph it is stands in
// that handle (its `node_output`, which no tensor without a node uses). In-place changes and views of traced tensors
// arrive as functional calls (levels/inplace.cpp). Tensors from outside become live constants.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "backplane/graph.hpp"
#include "graph/graph.hpp"
#include "levels/level.hpp"
#include "tape/sites.hpp"
#include "trace/trace_random.hpp"

namespace backplane::core {

class Structured;  // control/structured.hpp

class TraceLevel final : public Level, private Sites {
 public:
  TraceLevel(const char* transform, std::function<SourceLine()> where);
  ~TraceLevel() override;
  void handle(const Call& call) override;
  std::vector<Tensor> call_graph(const OpEntry& op, GraphFunction& function, std::span<const Tensor> args) override;
  void check_write(const Call& call, const TensorImpl& target) const override;
  bool knows_strides(const TensorImpl& whole) const override;
  bool* recording() override { return &recording_; }

  // `shape`: in place of the example's.
  Tensor enter(const Tensor& example, std::string name, std::optional<Shape> shape = {});
  std::shared_ptr<graph::Graph> finish(std::span<const Tensor> results);
  TraceRandom& random() { return random_; }
  // Tensors from outside become inputs behind those that were entered, and not constants: first these, then those that
  // are met, which are appended. The list lives as long as the level.
  void lift(std::vector<Tensor>& lifted);

 private:
  graph::ValueId value_of(TensorImpl* tensor);
  graph::Argument argument_of(const bp_value& value);
  TensorImpl* traced(graph::ValueId value, Device& device, bp_dtype dtype, int32_t ndim, const int64_t* sizes,
                     const int64_t* strides = nullptr);
  uint32_t location();
  void note(const Node& node) override;
  uint32_t enter(const Node& node) override;
  void leave(uint32_t before) override { derived_ = before; }
  bool is_own_constant(graph::ValueId value, std::span<const Tensor> results) const;
  void record(const Call& call);
  std::vector<Tensor> record_structured(const Structured& call, std::span<const Tensor> args);

  std::shared_ptr<graph::Graph> graph_;
  TraceRandom random_;
  std::function<SourceLine()> where_;
  std::unordered_map<const TensorImpl*, graph::ValueId> constants_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> of_control_flow_;  // results, whose strides are those of whatever a body returns
  std::vector<Tensor>* lifted_ = nullptr;
  Sites* const outer_sites_;
  struct Site {
    const OpEntry* op;  // of the node: another one may come to lie where it was
    uint32_t location;
  };
  std::unordered_map<const Node*, Site> noted_;
  uint32_t derived_ = graph::kNone;  // the line of the op whose derivative runs now
  bool recording_ = true;            // the function's no_grad; a graph has none
};

}  // namespace backplane::core
