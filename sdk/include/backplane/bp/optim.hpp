// Optimisers with PyTorch's names, arguments and arithmetic: SGD, Adam, AdamW, RMSprop; schedules; clipping.
//
// step() changes the parameters in place, from their grad() or from the gradients passed to it. It reads its settings
// and counts its calls on the host, therefore compile refuses it.
#pragma once

#include <numbers>

#include "backplane/bp/nn/module.hpp"

namespace bp::optim {

#define BP_OPTIM_OPTION(Class, type, name, value) \
 public:                                          \
  Class& name(type wanted) {                      \
    name##_ = wanted;                             \
    return *this;                                 \
  }                                               \
  type name() const { return name##_; }           \
                                                  \
 private:                                         \
  type name##_ = value

class SGDOptions {
 public:
  SGDOptions(double lr) : lr_(lr) {}
  BP_OPTIM_OPTION(SGDOptions, double, lr, 1e-3);
  BP_OPTIM_OPTION(SGDOptions, double, momentum, 0);
  BP_OPTIM_OPTION(SGDOptions, double, dampening, 0);
  BP_OPTIM_OPTION(SGDOptions, double, weight_decay, 0);
  BP_OPTIM_OPTION(SGDOptions, bool, nesterov, false);
};
class AdamOptions {
 public:
  using Betas = std::tuple<double, double>;
  AdamOptions(double lr = 1e-3) : lr_(lr) {}
  BP_OPTIM_OPTION(AdamOptions, double, lr, 1e-3);
  BP_OPTIM_OPTION(AdamOptions, Betas, betas, Betas(0.9, 0.999));
  BP_OPTIM_OPTION(AdamOptions, double, eps, 1e-8);
  BP_OPTIM_OPTION(AdamOptions, double, weight_decay, 0);
  BP_OPTIM_OPTION(AdamOptions, bool, amsgrad, false);
};
class AdamWOptions : public AdamOptions {
 public:
  AdamWOptions(double lr = 1e-3) : AdamOptions(lr) { AdamOptions::weight_decay(1e-2); }
  AdamWOptions(const AdamOptions& options) : AdamOptions(options) {}
};
class RMSpropOptions {
 public:
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  BP_OPTIM_OPTION(RMSpropOptions, double, lr, 1e-2);
  BP_OPTIM_OPTION(RMSpropOptions, double, alpha, 0.99);
  BP_OPTIM_OPTION(RMSpropOptions, double, eps, 1e-8);
  BP_OPTIM_OPTION(RMSpropOptions, double, weight_decay, 0);
  BP_OPTIM_OPTION(RMSpropOptions, double, momentum, 0);
  BP_OPTIM_OPTION(RMSpropOptions, bool, centered, false);
};
#undef BP_OPTIM_OPTION

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // From the grad() of each parameter; one without a gradient stays.
  void step() {
    std::vector<Tensor> gradients;
    for (const Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
    step(gradients);
  }
  // From gradients in the order of the parameters, as value_and_grad gives them.
  void step(const std::vector<Tensor>& gradients) {
    BP_CHECK(gradients.size() == parameters_.size(), VALUE, "Optimizer::step: found ", gradients.size(),
             " gradients, expected ", parameters_.size(), ", one per parameter");
    BP_CHECK(
        !backplane::every_call_taken(), NOT_IMPLEMENTED,
        "Optimizer::step: inside compile, its learning rate and its count of steps would be fixed. Fix: compile the "
        "loss and its gradient, and call step outside");
    const NoGrad guard;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!gradients[i].defined()) continue;
      ++steps_[i];
      update(parameters_[i], gradients[i].detach(), i);
    }
  }
  void zero_grad() const {
    for (const Tensor& parameter : parameters_) parameter.set_grad({});
  }

  virtual double lr() const = 0;
  virtual void set_lr(double lr) = 0;
  const std::vector<Tensor>& parameters() const noexcept { return parameters_; }

  // "step.I" and the tensors of each parameter's state by its position, such as "exp_avg.0"; the options are not in it.
  StateDict state_dict() const {
    StateDict state;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      state.emplace_back("step." + std::to_string(i), full({}, steps_[i], Dtype(kInt64), Device("cpu")));
      for (size_t k = 0; k < names_.size(); ++k)
        if (state_[k][i].defined()) state.emplace_back(names_[k] + "." + std::to_string(i), state_[k][i].detach());
    }
    return state;
  }
  void load_state_dict(const StateDict& state) {
    std::vector<std::vector<Tensor>> loaded(names_.size(), std::vector<Tensor>(parameters_.size()));
    std::vector<int64_t> steps(parameters_.size());
    size_t used = 0;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      steps[i] = state.at("step." + std::to_string(i)).item<int64_t>();
      ++used;
      for (size_t k = 0; k < names_.size(); ++k) {
        const std::string name = names_[k] + "." + std::to_string(i);
        if (!state.contains(name)) continue;
        ++used;
        const Tensor& found = state[name];
        BP_CHECK(found.sizes() == parameters_[i].sizes(), SHAPE, "Optimizer::load_state_dict: '", name,
                 "': found the shape ", detail::shown_shape(found), ", expected ", detail::shown_shape(parameters_[i]));
        loaded[k][i] = found.to(parameters_[i].device(), parameters_[i].dtype()).clone();
      }
    }
    BP_CHECK(used == state.size(), VALUE,
             "Optimizer::load_state_dict: found names that this kind of optimiser does not have");
    state_ = std::move(loaded);
    steps_ = std::move(steps);
  }

 protected:
  Optimizer(std::vector<Tensor> parameters, std::vector<std::string> names)
      : parameters_(std::move(parameters)),
        steps_(parameters_.size()),
        names_(std::move(names)),
        state_(names_.size(), std::vector<Tensor>(parameters_.size())) {
    BP_CHECK(!parameters_.empty(), VALUE, "Optimizer: found no parameters");
    for (const Tensor& parameter : parameters_)
      BP_CHECK(parameter.is_leaf(), VALUE, "Optimizer: found a parameter that is a result, expected leaves");
  }

  virtual void update(const Tensor& parameter, Tensor gradient, size_t i) = 0;
  int64_t steps(size_t i) const { return steps_[i]; }
  // The state `kind` of parameter i; zeros at first.
  Tensor& state(size_t kind, size_t i) {
    Tensor& found = state_[kind][i];
    if (!found.defined()) found = parameters_[i].detach().zeros_like();
    return found;
  }
  bool has_state(size_t kind, size_t i) const { return state_[kind][i].defined(); }

 private:
  std::vector<Tensor> parameters_;
  std::vector<int64_t> steps_;
  std::vector<std::string> names_;
  std::vector<std::vector<Tensor>> state_;  // by name, then parameter
};

template <class Options>
class OptimizerOf : public Optimizer {
 public:
  double lr() const override { return options_.lr(); }
  void set_lr(double lr) override { options_.lr(lr); }
  Options& options() noexcept { return options_; }
  const Options& options() const noexcept { return options_; }

 protected:
  OptimizerOf(std::vector<Tensor> parameters, Options options, std::vector<std::string> names)
      : Optimizer(std::move(parameters), std::move(names)), options_(options) {
    BP_CHECK(options.lr() >= 0, VALUE, "Optimizer: found the learning rate ", options.lr(), ", expected one from 0");
  }
  Options options_;
};

class SGD : public OptimizerOf<SGDOptions> {
 public:
  SGD(std::vector<Tensor> parameters, SGDOptions options)
      : OptimizerOf(std::move(parameters), options, {"momentum_buffer"}) {
    BP_CHECK(!options.nesterov() || (options.momentum() > 0 && options.dampening() == 0), VALUE,
             "SGD: nesterov needs a momentum and no dampening");
  }

 protected:
  void update(const Tensor& parameter, Tensor gradient, size_t i) override {
    if (options_.weight_decay() != 0) gradient = gradient + parameter * options_.weight_decay();
    if (options_.momentum() != 0) {
      const bool first = !has_state(0, i);
      Tensor& buffer = state(0, i);
      if (first)
        buffer = gradient.clone();
      else
        (buffer *= options_.momentum()) += gradient * (1 - options_.dampening());
      gradient = options_.nesterov() ? gradient + buffer * options_.momentum() : buffer;
    }
    parameter.sub_(gradient * options_.lr());
  }
};

class Adam : public OptimizerOf<AdamOptions> {
 public:
  Adam(std::vector<Tensor> parameters, AdamOptions options = {}) : Adam(std::move(parameters), options, false) {}

 protected:
  Adam(std::vector<Tensor> parameters, AdamOptions options, bool decoupled)
      : OptimizerOf(std::move(parameters), options, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}),
        decoupled_(decoupled) {}

  void update(const Tensor& parameter, Tensor gradient, size_t i) override {
    const double decay = options_.weight_decay(), lr = options_.lr();
    const auto [beta1, beta2] = options_.betas();
    if (decay != 0 && decoupled_) parameter.mul_(1 - lr * decay);
    if (decay != 0 && !decoupled_) gradient = gradient + parameter * decay;
    Tensor &mean = state(0, i), &square = state(1, i);
    mean.lerp_(gradient, 1 - beta1);
    (square *= beta2) += gradient * gradient * (1 - beta2);
    const auto t = static_cast<double>(steps(i));
    const double correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
    Tensor largest = square;
    if (options_.amsgrad()) {
      state(2, i) = maximum(state(2, i), square);
      largest = state(2, i);
    }
    parameter.sub_(mean * (lr / correction1) / (sqrt(largest) / std::sqrt(correction2) + options_.eps()));
  }

 private:
  bool decoupled_;
};

// Adam whose weight decay does not go through the moments.
class AdamW : public Adam {
 public:
  AdamW(std::vector<Tensor> parameters, AdamWOptions options = {}) : Adam(std::move(parameters), options, true) {}
};

class RMSprop : public OptimizerOf<RMSpropOptions> {
 public:
  RMSprop(std::vector<Tensor> parameters, RMSpropOptions options = {})
      : OptimizerOf(std::move(parameters), options, {"square_avg", "momentum_buffer", "grad_avg"}) {}

 protected:
  void update(const Tensor& parameter, Tensor gradient, size_t i) override {
    if (options_.weight_decay() != 0) gradient = gradient + parameter * options_.weight_decay();
    const double alpha = options_.alpha();
    Tensor& square = state(0, i);
    (square *= alpha) += gradient * gradient * (1 - alpha);
    Tensor deviation = square;
    if (options_.centered()) {
      state(2, i).lerp_(gradient, 1 - alpha);
      deviation = square - state(2, i) * state(2, i);
    }
    Tensor change = gradient / (sqrt(deviation) + options_.eps());
    if (options_.momentum() != 0) change = (state(1, i) *= options_.momentum()) += change;
    parameter.sub_(change * options_.lr());
  }
};

// ---- schedules: step() after each epoch or step of the optimiser

class LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(optimizer), base_(optimizer.lr()) {}
  virtual ~LRScheduler() = default;
  void step() { optimizer_.set_lr(lr_at(++epoch_)); }
  double base_lr() const noexcept { return base_; }

 protected:
  virtual double lr_at(int64_t epoch) const = 0;

 private:
  Optimizer& optimizer_;
  double base_;
  int64_t epoch_ = 0;
};

// base * gamma ^ (epoch / step_size)
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1)
      : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {}

 protected:
  double lr_at(int64_t epoch) const override {
    return base_lr() * std::pow(gamma_, static_cast<double>(epoch / step_size_));
  }

 private:
  int64_t step_size_;
  double gamma_;
};

// Half a cosine from base to eta_min in T_max steps.
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0)
      : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {}

 protected:
  double lr_at(int64_t epoch) const override {
    const double turn = std::numbers::pi * static_cast<double>(epoch) / static_cast<double>(t_max_);
    return eta_min_ + (base_lr() - eta_min_) * (1 + std::cos(turn)) / 2;
  }

 private:
  int64_t t_max_;
  double eta_min_;
};

}  // namespace bp::optim

namespace bp::nn::utils {

// Scales the gradients in place so that their norm together is at most max_norm; returns the norm before.
inline double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm) {
  const NoGrad guard;
  double squares = 0;
  for (const Tensor& parameter : parameters)
    if (const Tensor gradient = parameter.grad(); gradient.defined())
      squares += std::pow(gradient.norm().item<double>(), 2);
  const double norm = std::sqrt(squares);
  const double factor = max_norm / (norm + 1e-6);
  if (factor < 1)
    for (const Tensor& parameter : parameters)
      if (const Tensor gradient = parameter.grad(); gradient.defined()) gradient.mul_(factor);
  return norm;
}

}  // namespace bp::nn::utils
