#include "functions/closed_over.hpp"

#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {

ClosedOver::ClosedOver(GraphFunction& function, size_t n_own, Args outside)
    : DerivedFunction(function.name(), function.recompute()),
      inner_(function.shared_from_this()),
      n_own_(n_own),
      outside_(outside.begin(), outside.end()),
      traced_(ReplacedTensors::now()) {}

ReplacedTensors::Pairs ClosedOver::replaced(Args given) const {
  ReplacedTensors::Pairs all{outside_, {given.begin(), given.end()}};
  for (size_t i = 0; i < traced_.tensors.size(); ++i) {
    Tensor value = traced_.values[i];
    for (size_t k = 0; k < outside_.size(); ++k)
      if (outside_[k].get() == traced_.values[i].get()) value = given[k];
    all.tensors.push_back(traced_.tensors[i]);
    all.values.push_back(std::move(value));
  }
  return all;
}

std::vector<Tensor> ClosedOver::call(Args args) {
  const ReplacedTensors scope(replaced(args.subspan(n_own_)));
  return inner_->call(args.first(n_own_));
}

// The values of the tensors from outside are kept behind the function's own residuals.
GraphFunction::Forward ClosedOver::forward(Args args) {
  const Args given = args.subspan(n_own_);
  const ReplacedTensors scope(replaced(given));
  Forward forward = inner_->forward(args.first(n_own_));
  forward.residuals.tensors.insert(forward.residuals.tensors.end(), given.begin(), given.end());
  if (!forward.moves.empty()) forward.moves.resize(args.size(), 0);
  return forward;
}

std::vector<Tensor> ClosedOver::backward(const Residuals& residuals, Args cotangents) {
  const Args all = residuals.tensors, own = all.first(all.size() - outside_.size());
  const ReplacedTensors scope(replaced(all.subspan(own.size())));
  std::vector<Tensor> found = inner_->backward({{own.begin(), own.end()}, residuals.rest}, cotangents);
  if (found.size() == n_own_) found.resize(n_own_ + outside_.size());
  return found;
}

GraphFunction::Duals ClosedOver::jvp(Args primals, Args tangents) {
  const ReplacedTensors scope(replaced(primals.subspan(n_own_)));
  return inner_->jvp(primals.first(n_own_), tangents.first(n_own_));
}

GraphFunction::Batched ClosedOver::batch(int64_t size, const std::vector<bool>& batched, Args args) {
  const ReplacedTensors scope(replaced(args.subspan(n_own_)));
  return inner_->batch(size, {batched.begin(), batched.begin() + static_cast<ptrdiff_t>(n_own_)}, args.first(n_own_));
}

void check_covered(const GraphFunction& function, Args args, const std::vector<bool>& flags, const char* transform,
                   const char* what) {
  for (size_t i = 0; i < args.size(); ++i)
    BP_CHECK(!flags[i] || covers(function, i), VALUE, function.name(), ": uses a tensor from outside, ",
             kDtypeNames[args[i].dtype()], " of shape ", shape_text(args[i].shape()), ", that ", transform, " ", what,
             ", and which its rules do not cover. Fix: make it an argument, or use stop_gradient of it");
}

}  // namespace backplane::core
