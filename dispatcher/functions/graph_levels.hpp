// Functions derived by levels for the levels below: each pushes its level again, with its serial, around the original.
//
// So the function sees tensors of the level from outside unchanged, and the level's own results are unwrapped
// before they go down. A derived function may outlive the call that made it: a node below keeps it.
#pragma once

#include "functions/closed_function.hpp"
#include "functions/graph_call.hpp"
#include "grad/grad_level.hpp"
#include "jvp/jvp_level.hpp"

namespace backplane::core {

// Tensors from below, as a level that a function runs at has them for its own: values computed from them belong to
// the level too, and may be written into new tensors. `batched`: which have the batch of a batching level.
std::vector<Tensor> entered(const Level& level, Args inner, const std::vector<bool>& batched = {});

// The arguments of a function, entered. They are its caller's: a change in place would be lost with the level.
class Arguments {
 public:
  Arguments(const Level& level, Args inner, const std::vector<bool>& batched = {})
      : tensors(entered(level, inner, batched)) {}
  // Throws where the function has changed one.
  void check_unchanged(const GraphFunction& function, const Level& level) const;
  const std::vector<Tensor> tensors;
};

// Passes every member on, with arguments from below the level: to the level they are constants.
class Reentered : public DerivedFunction {
 public:
  explicit Reentered(GraphFunction& inner)
      : DerivedFunction(inner.name(), inner.recompute()), inner_(inner.shared_from_this()) {}
  bool has(Rule rule) const noexcept override { return inner_->has(rule); }
  bool takes_empty_zeros() const noexcept override { return inner_->takes_empty_zeros(); }
  std::vector<Tensor> call(Args args) override;
  Forward forward(Args args) override;
  std::vector<Tensor> backward(const Residuals& residuals, Args cotangents) override;
  Duals jvp(Args primals, Args tangents) override;
  Batched batch(int64_t size, const std::vector<bool>& batched, Args args) override;
  bool covers(size_t argument) const override { return core::covers(*inner_, argument); }

 protected:
  virtual std::unique_ptr<Level> push() const = 0;
  // A result as seen below the level.
  virtual Tensor leave(const Level& level, const Tensor& result) = 0;
  // The arguments of a call, as the function gets them.
  virtual void note_arguments(const Level&, Args) {}
  std::shared_ptr<GraphFunction> inner_;

 private:
  void leave_all(const Level& level, std::vector<Tensor>& results);
};

// A grad level that notes which of its tensors are used.
class AtGradLevel final : public Reentered {
 public:
  AtGradLevel(GraphFunction& inner, const GradLevel& level, Captures* captures)
      : Reentered(inner), transform_(level.transform), serial_(level.serial), captures_(captures) {}
  // The arguments that the level differentiates: what a run makes of them is marked (Captures).
  void follow(std::vector<bool> arguments) { followed_ = std::move(arguments); }
  void stop_noting() { captures_ = nullptr; }  // its owner ends

 private:
  std::unique_ptr<Level> push() const override;
  Tensor leave(const Level& level, const Tensor& result) override;
  void note_arguments(const Level& level, Args arguments) override;
  const char* transform_;
  uint64_t serial_;
  Captures* captures_;
  std::vector<bool> followed_;
};

// A forward level whose tangents the function must not use, because its rules do not cover them.
class AtJvpLevel final : public Reentered {
 public:
  AtJvpLevel(GraphFunction& inner, const JvpLevel& level)
      : Reentered(inner), transform_(level.transform), serial_(level.serial) {}

 private:
  std::unique_ptr<Level> push() const override;
  Tensor leave(const Level& level, const Tensor& result) override;
  const char* transform_;
  uint64_t serial_;
};

// A checkpoint in forward mode: from primals and the tangents that are not zero to results and their tangents.
class ForwardPass final : public DerivedFunction {
 public:
  // `report` receives which results have a tangent, until `stop_reporting`.
  ForwardPass(GraphFunction& inner, const JvpLevel& level, std::vector<bool> has_tangent, std::vector<bool>* report)
      : DerivedFunction(inner.name(), inner.recompute()),
        inner_(inner.shared_from_this()),
        transform_(level.transform),
        serial_(level.serial),
        has_tangent_(std::move(has_tangent)),
        report_(report) {}
  std::vector<Tensor> call(Args args) override;
  bool covers(size_t argument) const override { return core::covers(*inner_, argument); }
  void stop_reporting() { report_ = nullptr; }  // its owner ends

 private:
  std::shared_ptr<GraphFunction> inner_;
  const char* transform_;
  uint64_t serial_;
  std::vector<bool> has_tangent_;
  std::vector<bool>* report_;
};

// A tensor as seen below a level; itself where it is not the level's.
Tensor inner_of(const Level& level, const Tensor& tensor);
std::vector<Tensor> inner_of(const Level& level, Args tensors);
// A tensor of the level around one from below.
Tensor wrapped(const Level& level, const Tensor& inner, bool batched = false);

}  // namespace backplane::core
