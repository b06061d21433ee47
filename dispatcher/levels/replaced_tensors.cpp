#include "levels/replaced_tensors.hpp"

#include <utility>

namespace backplane::core {

namespace {
thread_local constinit const ReplacedTensors* replaced_now = nullptr;
}

ReplacedTensors::ReplacedTensors(Pairs pairs) : pairs_(std::move(pairs)), outer_(std::exchange(replaced_now, this)) {}
ReplacedTensors::~ReplacedTensors() { replaced_now = outer_; }
bool ReplacedTensors::any() noexcept { return replaced_now != nullptr; }

TensorImpl* ReplacedTensors::value_of(TensorImpl* tensor) noexcept {
  const auto in = [](const Pairs& pairs, TensorImpl* of) {
    for (size_t i = 0; i < pairs.tensors.size(); ++i)
      if (pairs.tensors[i].get() == of) return impl(pairs.values[i]);
    return of;
  };
  for (const ReplacedTensors* scope = replaced_now; scope; scope = scope->outer_) tensor = in(scope->pairs_, tensor);
  return tensor;
}

ReplacedTensors::Pairs ReplacedTensors::now() {
  Pairs all;
  for (const ReplacedTensors* scope = replaced_now; scope; scope = scope->outer_) {
    const std::vector<Tensor>& more = scope->pairs_.tensors;
    all.tensors.insert(all.tensors.end(), more.begin(), more.end());
  }
  for (const Tensor& tensor : all.tensors) all.values.push_back(Tensor::share(value_of(impl(tensor))));
  return all;
}

WithReplaced::WithReplaced(const Call& call) : call_(call) {
  for (int32_t i = 0; i < call.n_outs; ++i) {
    if (!(call.outs[i].flags & BP_VALUE_GIVEN)) continue;
    TensorImpl* target = impl(call.outs[i].u.t);
    BP_CHECK(ReplacedTensors::value_of(target) == target, VALUE, call.op.record->name,
             ": the rule of a function in control flow writes into a tensor from outside. Fix: write into a copy, and "
             "return the new value");
  }
  for (int32_t i = 0; i < call.n_args; ++i)
    args_[i] = mapped(call.args[i], lists_, [this](bp_tensor* t) -> bp_tensor* {
      TensorImpl* const value = ReplacedTensors::value_of(impl(t));
      any_ = any_ || value != t;
      return value;
    });
}

}  // namespace backplane::core
