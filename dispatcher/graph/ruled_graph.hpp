// A graph that holds the ops of a function with rules of its own, as a function: the graph computes, and the rules
// answer transforms. The rules are the author's, so the function lives in this process alone.
#pragma once

#include "functions/closed_function.hpp"
#include "graph/passes/moved_outputs.hpp"
#include "graph/plans/executable.hpp"

namespace backplane::core::graph {

class RuledGraph final : public TracedRules {
 public:
  explicit RuledGraph(std::shared_ptr<const Graph> graph)
      : TracedRules(graph->rules->name()), graph_(graph), executable_(std::move(graph)) {}
  bool has(Rule rule) const noexcept override { return graph_->rules->has(rule); }
  bool takes_empty_zeros() const noexcept override { return graph_->rules->takes_empty_zeros(); }
  std::vector<Tensor> call(std::span<const Tensor> args) override { return executable_.run(args); }
  Forward forward(std::span<const Tensor> args) override { return graph_->rules->forward(args); }
  std::vector<Tensor> backward(const Residuals& residuals, std::span<const Tensor> cotangents) override {
    return graph_->rules->backward(residuals, cotangents);
  }
  Duals jvp(std::span<const Tensor> primals, std::span<const Tensor> tangents) override {
    return graph_->rules->jvp(primals, tangents);
  }
  Batched batch(int64_t size, const std::vector<bool>& batched, std::span<const Tensor> args) override {
    return graph_->rules->batch(size, batched, args);
  }
  // What moves no result needs no rule.
  bool covers(size_t argument) const override {
    return core::covers(*graph_->rules, argument) || moved_outputs(*graph_)[argument] == 0;
  }
  const std::shared_ptr<const Graph>& graph() const { return graph_; }

 private:
  std::shared_ptr<const Graph> graph_;
  Executable executable_;
};

}  // namespace backplane::core::graph
