// A function with rules of its own, which takes the tensors that it uses from outside as further arguments.
#pragma once

#include "functions/closed_function.hpp"
#include "functions/graph_call.hpp"
#include "levels/replaced_tensors.hpp"

namespace backplane::core {

// Wherever the function or a rule runs, each tensor from outside stands for the value that the call has for it.
class ClosedOver final : public DerivedFunction {
 public:
  // `n_own`: the arguments of the function. Behind them, in this order, it takes values for the tensors from outside.
  // The replacements of this moment hold in each run.
  ClosedOver(GraphFunction& function, size_t n_own, Args outside);
  bool has(Rule rule) const noexcept override { return inner_->has(rule); }
  bool takes_empty_zeros() const noexcept override { return inner_->takes_empty_zeros(); }
  bool covers(size_t argument) const override { return argument < n_own_ && core::covers(*inner_, argument); }
  std::vector<Tensor> call(Args args) override;
  Forward forward(Args args) override;
  std::vector<Tensor> backward(const Residuals& residuals, Args cotangents) override;
  Duals jvp(Args primals, Args tangents) override;
  Batched batch(int64_t size, const std::vector<bool>& batched, Args args) override;

 private:
  // The replacements for a run of the function, or of a rule, with these further arguments.
  ReplacedTensors::Pairs replaced(Args given) const;

  std::shared_ptr<GraphFunction> inner_;
  size_t n_own_;
  std::vector<Tensor> outside_;
  ReplacedTensors::Pairs traced_;  // the replacements when the function was traced
};

// Throws if a flagged argument is one that the function's rules do not cover. `what`: "differentiates", "batches".
void check_covered(const GraphFunction& function, Args args, const std::vector<bool>& flags, const char* transform,
                   const char* what);

}  // namespace backplane::core
