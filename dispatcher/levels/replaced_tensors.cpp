#include "levels/replaced_tensors.hpp"

#include <algorithm>
#include <utility>

namespace backplane::core {

namespace {
thread_local constinit const ReplacedTensors* replaced_now = nullptr;
}

ReplacedTensors::ReplacedTensors(Pairs pairs) : pairs_(std::move(pairs)), outer_(std::exchange(replaced_now, this)) {}
ReplacedTensors::ReplacedTensors(Pairs pairs, const Level& level)
    : pairs_(std::move(pairs)), level_(&level), outer_(std::exchange(replaced_now, this)) {}
ReplacedTensors::~ReplacedTensors() { replaced_now = outer_; }

void ReplacedTensors::replace(const Tensor& tensor, const Tensor& value) {
  const auto place = std::find_if(pairs_.tensors.begin(), pairs_.tensors.end(),
                                  [&](const Tensor& known) { return known.get() == tensor.get(); });
  const auto i = place - pairs_.tensors.begin();
  if (place != pairs_.tensors.end()) {
    pairs_.tensors.erase(place);
    pairs_.values.erase(pairs_.values.begin() + i);
  }
  if (!value) return;
  pairs_.tensors.push_back(tensor);
  pairs_.values.push_back(value);
}

bool ReplacedTensors::any() noexcept { return replaced_now != nullptr; }

bool ReplacedTensors::is_active() const noexcept {
  const Level* level = level_ ? thread_state.level : nullptr;
  while (level && level != level_) level = level->below;
  return level == level_;
}

TensorImpl* ReplacedTensors::found(TensorImpl* tensor) const noexcept {
  if (!is_active()) return nullptr;
  for (size_t i = 0; i < pairs_.tensors.size(); ++i)
    if (pairs_.tensors[i].get() == tensor) return impl(pairs_.values[i]);
  return nullptr;
}

TensorImpl* ReplacedTensors::value_of(TensorImpl* tensor) noexcept {
  for (const ReplacedTensors* scope = replaced_now; scope; scope = scope->outer_)
    if (TensorImpl* value = scope->found(tensor)) tensor = value;
  return tensor;
}

bool ReplacedTensors::takes_writes(TensorImpl* tensor) noexcept {
  for (const ReplacedTensors* scope = replaced_now; scope; scope = scope->outer_)
    if (scope->found(tensor)) return scope->level_ != nullptr;
  return true;
}

ReplacedTensors::Pairs ReplacedTensors::now() {
  Pairs all;
  for (const ReplacedTensors* scope = replaced_now; scope; scope = scope->outer_) {
    if (!scope->is_active()) continue;
    const std::vector<Tensor>& more = scope->pairs_.tensors;
    all.tensors.insert(all.tensors.end(), more.begin(), more.end());
  }
  for (const Tensor& tensor : all.tensors) all.values.push_back(Tensor::share(value_of(impl(tensor))));
  return all;
}

WithReplaced::WithReplaced(const Call& call) : call_(call) {
  for (int32_t i = 0; i < call.n_outs; ++i) {
    outs_[i] = call.outs[i];
    if (!(call.outs[i].flags & BP_VALUE_GIVEN)) continue;
    TensorImpl* const target = impl(call.outs[i].u.t);
    BP_CHECK(ReplacedTensors::takes_writes(target), VALUE, call.op.record->name,
             ": the rule of a function in control flow writes into a tensor from outside. Fix: write into a copy, and "
             "return the new value");
    outs_[i].u.t = ReplacedTensors::value_of(target);
    any_ = any_ || outs_[i].u.t != target;
  }
  for (int32_t i = 0; i < call.n_args; ++i)
    args_[i] = mapped(call.args[i], lists_, [this](bp_tensor* t) -> bp_tensor* {
      TensorImpl* const value = ReplacedTensors::value_of(impl(t));
      any_ = any_ || value != t;
      return value;
    });
}

void WithReplaced::dispatch() {
  core::dispatch({call_.op, args_, call_.n_args, outs_, call_.n_outs, call_.mask});
  for (int32_t i = 0; i < call_.n_outs; ++i)
    if (!(call_.outs[i].flags & BP_VALUE_GIVEN)) call_.outs[i] = outs_[i];
}

}  // namespace backplane::core
