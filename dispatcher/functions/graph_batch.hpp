// An op with a function at a batching level.
#pragma once

#include "batch/batch_level.hpp"
#include "functions/closed_function.hpp"
#include "functions/graph_call.hpp"

namespace backplane::core {

// A function over all rows of a batch: each of its members is the original's, run at the batching level. The batch is
// axis 0 of each tensor that has one.
class OverRows final : public DerivedFunction {
 public:
  // `report` receives which results have the batch, until `stop_reporting`.
  OverRows(GraphFunction& inner, const BatchLevel& level, std::vector<bool> batched, std::vector<bool>* report)
      : DerivedFunction(inner.name(), inner.recompute()),
        inner_(inner.shared_from_this()),
        transform_(level.transform),
        serial_(level.serial),
        size_(level.size),
        randomness_(level.randomness),
        batched_(std::move(batched)),
        report_(report) {}
  // Where the function has a forward rule alone, each row transposes it: the rows' results may differ where those of
  // the function are the same for all.
  bool has(Rule rule) const noexcept override {
    return rule != Rule::kBatch && (inner_->has(rule) || (rule == Rule::kBackward && transposes()));
  }
  bool takes_empty_zeros() const noexcept override { return inner_->takes_empty_zeros() || transposes(); }
  std::vector<Tensor> call(Args args) override;
  Forward forward(Args args) override;
  std::vector<Tensor> backward(const Residuals& residuals, Args cotangents) override;
  Duals jvp(Args primals, Args tangents) override;
  bool covers(size_t argument) const override { return core::covers(*inner_, argument); }
  void stop_reporting() { report_ = nullptr; }  // its owner ends

 private:
  void give_batch_to_all(const Level& level, std::vector<Tensor>& results, std::vector<bool>& have) const;
  bool transposes() const noexcept { return !inner_->has(Rule::kBackward) && inner_->has(Rule::kJvp); }

  std::shared_ptr<GraphFunction> inner_;
  const char* transform_;
  uint64_t serial_;
  int64_t size_;
  Randomness randomness_;
  std::vector<bool> batched_;
  std::vector<bool>* report_;
};

}  // namespace backplane::core
