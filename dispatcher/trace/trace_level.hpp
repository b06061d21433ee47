// Tracing as a level: it takes every call, infers what the call would give by the op's rules, and writes a node.
//
// A traced tensor is a wrapper whose inner tensor is a handle without data; which value of the graph it is stands in
// that handle (its `node_output`, which no tensor without a node uses). In-place changes and views of traced tensors
// arrive as functional calls (levels/inplace.cpp). Tensors from outside become live constants; for one that is written
// into, or viewed, stands a wrapper whose first value is that constant. Changes that the function leaves in
// its arguments and in tensors from outside are the graph's updates (trace_updates.cpp).
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>

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
  void check_write(const Call& call, const TensorImpl& target) override;
  TensorImpl* stand_in(TensorImpl* tensor) override;
  void note_read(TensorImpl& tensor, const char* who) override;
  void note_differentiable(std::vector<Tensor>* noted) override { differentiable_ = noted; }
  std::string line_of_program() const override;
  bool knows_strides(const TensorImpl& whole) const override;
  bool* recording() override { return &recording_; }

  // `shape`: in place of the example's.
  Tensor enter(const Tensor& example, std::string name, std::optional<Shape> shape = {});
  std::shared_ptr<graph::Graph> finish(std::span<const Tensor> results);
  TraceRandom& random() { return random_; }
  std::vector<TensorRead> reads() const;
  std::vector<Tensor> changed_outside() const;
  bool has_changed(const Tensor& tensor) const;
  // See traced_tensors.hpp; the first of a wrapper of this level.
  bool may_share_outside_memory(const TensorImpl& tensor) const;
  void note_lent(TensorImpl& tensor) {
    made_inside_.erase(&tensor);
    lent_.emplace(&tensor, Tensor::share(&tensor));
  }
  std::vector<Tensor> made_inside() const;
  void note_made_inside(TensorImpl& tensor) { made_inside_.emplace(&tensor, Tensor::share(&tensor)); }
  // Tensors from outside become inputs behind those that were entered, and not constants: first these, then those that
  // are met, which are appended. The list lives as long as the level.
  void lift(std::vector<Tensor>& lifted);
  // Of those that are met, the tensors that no transform and no tape follows stay constants.
  void keep_constants() { keeps_constants_ = true; }
  // Functions with rules of their own become nodes that keep the rules. Else they are taken apart into their ops.
  void keep_rules() { keeps_rules_ = true; }
  // The graph is never differentiated in place of its function.
  void runs_only() { runs_only_ = true; }

 private:
  graph::ValueId value_of(TensorImpl* tensor);
  // The same for a use that derivatives see: values computed under no_grad are constants of reverse mode there. So are
  // the operands of a loop under no_grad, which may have no derivative.
  graph::ValueId used_value(TensorImpl* tensor, bool by_loop = false);
  bool is_inexact(graph::ValueId value) const;
  void note_unrecorded(graph::NodeId node);
  graph::Argument argument_of(const bp_value& value);
  TensorImpl* traced(graph::ValueId value, Device& device, bp_dtype dtype, int32_t ndim, const int64_t* sizes,
                     const int64_t* strides = nullptr);
  uint32_t location();
  void note(const Node& node) override;
  uint32_t enter(const Node& node) override;
  void leave(uint32_t before) override { derived_ = before; }
  // ---- trace_updates.cpp
  struct Changed {
    TensorImpl* tensor;  // the wrapper
    graph::Update update;
    graph::ValueId value = graph::kNone;  // what it is in the end
  };
  TensorImpl* stand_in_for(const TensorImpl* tensor) const;
  bool is_over_changed(const TensorImpl& tensor) const;
  std::vector<Changed> changes(std::span<const Tensor> results) const;
  void settle(std::vector<Changed>& changed);
  graph::ValueId alias_of(graph::ValueId value) const;
  bool is_detached(graph::ValueId value) const;
  graph::ValueId detached_from(graph::ValueId value) const;
  bool is_of(graph::ValueId value, std::span<const Changed> changed) const;
  graph::ValueId output(const Tensor& result, std::span<const Changed> changed, std::span<const Tensor> results);
  graph::ValueId root_of(graph::ValueId value) const;
  graph::ValueId constant_under(graph::ValueId value) const;
  const Tensor& constant(graph::ValueId value) const;
  graph::ValueId copied(TensorImpl* t);
  bool is_own_constant(graph::ValueId value, std::span<const Tensor> results) const;
  bool is_made_inside(graph::ValueId value) const;
  bool has_own_memory(const TensorImpl& tensor) const;
  void keep_own_copies();

  void check_shapes_known(const OpEntry& op) const;
  void record(const Call& call);
  // ---- trace_structured.cpp
  std::vector<Tensor> record_structured(const Structured& call, std::span<const Tensor> args);
  std::vector<Tensor> record_function(const OpEntry& op, const std::shared_ptr<const graph::Graph>& function,
                                      std::span<const Tensor> args);
  std::vector<Tensor> record_functions_node(const OpEntry& op, std::span<const graph::Argument> arguments,
                                            std::span<const Tensor> results);
  std::shared_ptr<const graph::Graph> with_rules(GraphFunction& function, std::vector<Tensor>& args) const;

  std::shared_ptr<graph::Graph> graph_;
  TraceRandom random_;
  std::function<SourceLine()> where_;
  std::unordered_map<const TensorImpl*, graph::ValueId> constants_;
  std::vector<Tensor> inputs_;
  std::unordered_map<const TensorImpl*, TensorRead> reads_;
  struct StandIn {
    Tensor wrapper;
    graph::ValueId constant;
  };
  std::vector<StandIn> stand_ins_;
  std::unordered_map<const TensorImpl*, size_t> stand_in_of_;  // by the tensor from outside, which the graph holds
  std::unordered_multimap<const bp_storage*, size_t> stand_ins_over_;  // by that one's memory
  std::unordered_set<const TensorImpl*> recorded_;                     // what was changed while recording was on
  struct Detached {
    Tensor copy;                      // of a tensor that outside of the trace shares its memory
    graph::ValueId source;            // that tensor's value then
    std::string_view unseen_write{};  // the op that changed the copy, which the tensor was not given since
  };
  std::vector<Detached> detached_;                             // that were changed
  std::unordered_map<const TensorImpl*, Tensor> lent_;         // made inside, over memory that was there before
  std::unordered_map<const TensorImpl*, Tensor> made_inside_;  // tensors without wrappers, which others may hold
  std::unordered_map<graph::ValueId, Tensor> copies_;  // of own constants, and of what views of them may be, as results
  std::vector<Tensor> of_control_flow_;                // results, whose strides are those of whatever a body returns
  std::vector<Tensor>* lifted_ = nullptr;
  std::vector<Tensor>* differentiable_ = nullptr;  // of note_differentiable
  bool keeps_constants_ = false;
  Sites* const outer_sites_;
  struct Site {
    const OpEntry* op;  // of the node: another one may come to lie where it was
    uint32_t location;
  };
  std::unordered_map<const Node*, Site> noted_;
  uint32_t derived_ = graph::kNone;  // the line of the op whose derivative runs now
  bool keeps_rules_ = false, runs_only_ = false;
  bool recording_ = true;                                           // the function's no_grad; a graph has none
  std::unordered_set<graph::ValueId> unrecorded_;                   // values that were computed under no_grad
  std::unordered_map<graph::ValueId, graph::ValueId> constant_of_;  // by reverse_constant
};

}  // namespace backplane::core
