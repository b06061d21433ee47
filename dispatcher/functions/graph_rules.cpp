// The public side of graph functions: errors of missing rules, functions made of callables, and the backward rule that
// follows from a forward one.

#include "functions/graph_rules.hpp"

#include <utility>

#include "backplane/transforms.hpp"
#include "functions/graph_call.hpp"
#include "memory/process/thread_state.hpp"
#include "record/dtype_rules.hpp"
#include "tape/engine.hpp"

namespace backplane {

using core::throw_missing_rule;

GraphFunction::~GraphFunction() = default;
bool GraphFunction::has(Rule) const noexcept { return false; }
GraphFunction::Forward GraphFunction::forward(std::span<const Tensor>) {
  throw_missing_rule(*this, "reverse mode", "defvjp");
}
std::vector<Tensor> GraphFunction::backward(const Residuals&, std::span<const Tensor>) {
  throw_missing_rule(*this, "reverse mode", "defvjp");
}
GraphFunction::Duals GraphFunction::jvp(std::span<const Tensor>, std::span<const Tensor>) {
  throw_missing_rule(*this, "forward mode", "defjvp");
}
GraphFunction::Batched GraphFunction::batch(int64_t, const std::vector<bool>&, std::span<const Tensor>) {
  throw_missing_rule(*this, "vmap", "defvmap");
}

namespace {

class MadeOfCallables final : public GraphFunction {
 public:
  MadeOfCallables(std::string name, bool recompute, CustomRules rules)
      : GraphFunction(std::move(name), recompute), rules_(std::move(rules)) {}
  bool has(Rule rule) const noexcept override {
    return rule == Rule::kBackward ? rules_.forward && rules_.backward
           : rule == Rule::kJvp    ? static_cast<bool>(rules_.jvp)
                                   : static_cast<bool>(rules_.batch);
  }
  std::vector<Tensor> call(std::span<const Tensor> args) override { return rules_.call(args); }
  Forward forward(std::span<const Tensor> args) override {
    return rules_.forward ? rules_.forward(args) : GraphFunction::forward(args);
  }
  std::vector<Tensor> backward(const Residuals& residuals, std::span<const Tensor> cotangents) override {
    return rules_.backward ? rules_.backward(residuals, cotangents) : GraphFunction::backward(residuals, cotangents);
  }
  Duals jvp(std::span<const Tensor> primals, std::span<const Tensor> tangents) override {
    return rules_.jvp ? rules_.jvp(primals, tangents) : GraphFunction::jvp(primals, tangents);
  }
  Batched batch(int64_t size, const std::vector<bool>& batched, std::span<const Tensor> args) override {
    return rules_.batch ? rules_.batch(size, batched, args) : GraphFunction::batch(size, batched, args);
  }

 private:
  CustomRules rules_;
};

// A jvp is linear in its tangents; its transpose, found by differentiating it with respect to them, is the vjp. The
// residuals are the arguments.
class Transposed final : public GraphFunction {
 public:
  explicit Transposed(GraphFunction& function)
      : GraphFunction(function.name()), function_(function.shared_from_this()) {}
  bool takes_empty_zeros() const noexcept override { return true; }
  std::vector<Tensor> call(std::span<const Tensor> args) override { return function_->call(args); }
  Forward forward(std::span<const Tensor> args) override {
    return {function_->call(args), {{args.begin(), args.end()}, nullptr}};
  }
  std::vector<Tensor> backward(const Residuals& residuals, std::span<const Tensor> cotangents) override {
    const std::vector<Tensor>& primals = residuals.tensors;
    std::vector<Tensor> zeros;
    std::vector<size_t> places;
    for (size_t i = 0; i < primals.size(); ++i) {
      if (!(BP_DTYPE_BIT(primals[i].dtype()) & (BP_MASK_FLOATING | BP_MASK_COMPLEX))) continue;
      zeros.push_back(core::filled(primals[i].shape(), 0.0, primals[i].dtype(), primals[i].device()));
      places.push_back(i);
    }
    std::vector<Tensor> wanted;
    const auto linear = [&](std::span<const Tensor> tangents) {
      std::vector<Tensor> all(primals.size());
      for (size_t k = 0; k < places.size(); ++k) all[places[k]] = tangents[k];
      Duals duals = function_->jvp(primals, all);
      std::vector<Tensor> out;
      for (size_t j = 0; j < duals.tangents.size() && j < cotangents.size(); ++j) {
        if (!duals.tangents[j] || !cotangents[j]) continue;
        out.push_back(duals.tangents[j]);
        wanted.push_back(cotangents[j]);
      }
      return out;
    };
    const std::vector<Tensor> found = vjp(linear, zeros).pullback(wanted, false);
    std::vector<Tensor> all(primals.size());
    for (size_t k = 0; k < places.size(); ++k) all[places[k]] = found[k];
    return all;
  }

 private:
  std::shared_ptr<GraphFunction> function_;
};

}  // namespace

std::shared_ptr<GraphFunction> make_custom_function(std::string name, CustomRules rules) {
  BP_CHECK(rules.call, VALUE, name, ": a custom function needs a function to compute (call)");
  return std::make_shared<MadeOfCallables>(std::move(name), false, std::move(rules));
}

std::shared_ptr<GraphFunction> make_checkpoint(std::string name,
                                               std::function<std::vector<Tensor>(std::span<const Tensor>)> function) {
  BP_CHECK(function, VALUE, name, ": a checkpoint needs a function");
  CustomRules rules;
  rules.call = std::move(function);
  return std::make_shared<MadeOfCallables>(std::move(name), true, std::move(rules));
}

namespace core {

namespace {
thread_local constinit const ByForwardRules* by_forward_rules = nullptr;
}

ByForwardRules::ByForwardRules(bool on) noexcept
    : outer_(std::exchange(by_forward_rules, this)), level_(thread_state.level), on_(on) {}
ByForwardRules::~ByForwardRules() { by_forward_rules = outer_; }
bool ByForwardRules::active() noexcept {
  return by_forward_rules && by_forward_rules->on_ && by_forward_rules->level_ == thread_state.level;
}

void throw_missing_rule(const GraphFunction& function, const char* transform, const char* rule) {
  detail::fail(BP_ERROR_NOT_IMPLEMENTED, function.name(), ": ", transform,
               " needs a rule that this function lacks. Fix: add it with ", rule);
}

std::shared_ptr<GraphFunction> with_backward(GraphFunction& function, const char* transform) {
  if (function.has(GraphFunction::Rule::kBackward)) return function.shared_from_this();
  if (!function.has(GraphFunction::Rule::kJvp)) throw_missing_rule(function, transform, "defvjp");
  return std::make_shared<Transposed>(function);
}

}  // namespace core
}  // namespace backplane
