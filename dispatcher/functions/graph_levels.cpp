#include "functions/graph_levels.hpp"

#include <algorithm>

#include "functions/closed_function.hpp"
#include "functions/closed_over.hpp"
#include "functions/graph_node.hpp"
#include "functions/graph_rules.hpp"
#include "levels/inplace.hpp"
#include "record/dtype_rules.hpp"
#include "tape/engine.hpp"

namespace backplane::core {
namespace {

std::vector<Tensor> call_below(const Level& level, const OpEntry& op, GraphFunction& function, Args inner) {
  BelowLevel below(level);
  return call_graph(op, function, inner);
}

std::vector<Tensor> wrapped(const Level& level, const std::vector<Tensor>& inner) {
  std::vector<Tensor> outer;
  for (const Tensor& t : inner) outer.push_back(core::wrapped(level, t));
  return outer;
}

void give_tangent(const Tensor& dual, const Tensor& tangent) {
  impl(dual)->wrapper->tangent = impl(Tensor(tangent).detach_handle());
}

Tensor with_tangent(const Level& level, const Tensor& inner, const Tensor& tangent) {
  Tensor dual = core::wrapped(level, inner);
  give_tangent(dual, tangent);
  return dual;
}

void check_tangents(const GraphFunction& function, const GraphFunction::Duals& duals) {
  BP_CHECK(duals.tangents.size() == duals.results.size(), VALUE, function.name(), ": its jvp rule returned ",
           duals.tangents.size(), " tangents for ", duals.results.size(), " results; expected one per result");
  for (size_t j = 0; j < duals.results.size(); ++j) {
    if (!duals.tangents[j]) continue;
    const Tensor &result = duals.results[j], &tangent = duals.tangents[j];
    BP_CHECK(same_shape(*result.get(), *tangent.get()), SHAPE, function.name(),
             ": its jvp rule returned a tangent of another shape than result ", j, " has");
    BP_CHECK(result.dtype() == tangent.dtype(), DTYPE, function.name(), ": its jvp rule returned a tangent of dtype ",
             kDtypeNames[tangent.dtype()], " for result ", j, ", which is of ", kDtypeNames[result.dtype()],
             "; cast it");
  }
}

}  // namespace

Tensor inner_of(const Level& level, const Tensor& tensor) {
  if (!tensor) return {};
  const Wrapper* wrapper = wrapper_of(level, impl(tensor));
  if (!wrapper) return tensor;
  if (impl(tensor)->view) refresh(impl(tensor));
  return Tensor::share(wrapper->inner);
}

std::vector<Tensor> inner_of(const Level& level, Args tensors) {
  std::vector<Tensor> inner;
  for (const Tensor& t : tensors) inner.push_back(inner_of(level, t));
  return inner;
}

Tensor wrapped(const Level& level, const Tensor& inner, bool batched) {
  retain(impl(inner));
  return Tensor::adopt(wrap(level, impl(inner), batched));
}

std::vector<Tensor> entered(const Level& level, Args inner, const std::vector<bool>& batched) {
  std::vector<Tensor> own;
  for (size_t i = 0; i < inner.size(); ++i)
    own.push_back(inner[i] ? wrapped(level, inner[i], !batched.empty() && batched[i]) : Tensor());
  return own;
}

void Arguments::check_unchanged(const GraphFunction& function, const Level& level) const {
  for (size_t i = 0; i < tensors.size(); ++i)
    BP_CHECK(!tensors[i] || version_now(*impl(tensors[i])) == 0, VALUE, function.name(), ": changes its argument ", i,
             " in place, and ", level.transform,
             " would lose the change. Fix: copy it first, and return the new value");
}

// ---- derived functions -----------------------------------------------------------------------------------------

void Reentered::leave_all(const Level& level, std::vector<Tensor>& results) {
  for (Tensor& t : results)
    if (t) t = leave(level, t);
}

std::vector<Tensor> Reentered::call(Args args) {
  const std::unique_ptr<Level> level = push();
  const Arguments arguments(*level, args);
  note_arguments(*level, arguments.tensors);
  std::vector<Tensor> results = inner_->call(arguments.tensors);
  arguments.check_unchanged(*this, *level);
  leave_all(*level, results);
  return results;
}

GraphFunction::Forward Reentered::forward(Args args) {
  const std::unique_ptr<Level> level = push();
  const Arguments arguments(*level, args);
  Forward forward = inner_->forward(arguments.tensors);
  arguments.check_unchanged(*this, *level);
  leave_all(*level, forward.results);
  leave_all(*level, forward.residuals.tensors);
  return forward;
}

std::vector<Tensor> Reentered::backward(const Residuals& residuals, Args cotangents) {
  const std::unique_ptr<Level> level = push();
  std::vector<Tensor> found =
      inner_->backward({entered(*level, residuals.tensors), residuals.rest}, entered(*level, cotangents));
  leave_all(*level, found);
  return found;
}

GraphFunction::Duals Reentered::jvp(Args primals, Args tangents) {
  const std::unique_ptr<Level> level = push();
  const Arguments arguments(*level, primals);
  Duals duals = inner_->jvp(arguments.tensors, entered(*level, tangents));
  arguments.check_unchanged(*this, *level);
  leave_all(*level, duals.results);
  leave_all(*level, duals.tangents);
  return duals;
}

GraphFunction::Batched Reentered::batch(int64_t size, const std::vector<bool>& batched, Args args) {
  const std::unique_ptr<Level> level = push();
  const Arguments arguments(*level, args);
  Batched result = inner_->batch(size, batched, arguments.tensors);
  arguments.check_unchanged(*this, *level);
  leave_all(*level, result.results);
  return result;
}

std::unique_ptr<Level> AtGradLevel::push() const {
  auto level = std::make_unique<GradLevel>(transform_, serial_);
  level->is_passive = captures_ == nullptr;
  level->captures = captures_;
  return level;
}

Tensor AtGradLevel::leave(const Level& level, const Tensor& result) {
  const bool own = wrapper_of(level, impl(result)) != nullptr;
  Tensor inner = inner_of(level, result);
  if (captures_ && own && impl(result)->node) captures_->note(impl(result));
  return inner;
}

void AtGradLevel::note_arguments(const Level& level, Args arguments) {
  for (size_t i = 0; captures_ && i < followed_.size(); ++i)
    if (followed_[i]) captures_->mark(arguments.subspan(i, 1), &level);
}

std::unique_ptr<Level> AtJvpLevel::push() const { return std::make_unique<JvpLevel>(transform_, serial_); }

Tensor AtJvpLevel::leave(const Level& level, const Tensor& result) {
  Tensor inner = inner_of(level, result);
  const Wrapper* wrapper = wrapper_of(level, impl(result));
  BP_CHECK(!wrapper || !wrapper->tangent, VALUE, name(), ": uses a tensor from outside that ", transform_,
           " differentiates, and which its rules do not cover. Fix: make it an argument, or use stop_gradient of it");
  return inner;
}

std::vector<Tensor> ForwardPass::call(Args args) {
  JvpLevel level(transform_, serial_);
  const Arguments duals(level, args.first(has_tangent_.size()));
  size_t next = has_tangent_.size();
  for (size_t i = 0; i < has_tangent_.size(); ++i)
    if (has_tangent_[i]) give_tangent(duals.tensors[i], args[next++]);
  std::vector<Tensor> results = inner_->call(duals.tensors), tangents;
  duals.check_unchanged(*this, level);
  std::vector<bool> with;
  for (Tensor& t : results) {
    Tensor inner = inner_of(level, t);
    const Wrapper* wrapper = wrapper_of(level, impl(t));
    with.push_back(wrapper && wrapper->tangent);
    if (with.back()) tangents.push_back(Tensor::share(wrapper->tangent));
    t = std::move(inner);
  }
  if (report_) *report_ = std::move(with);
  results.insert(results.end(), tangents.begin(), tangents.end());
  return results;
}

// ---- levels ----------------------------------------------------------------------------------------------------

std::vector<Tensor> GradLevel::call_graph(const OpEntry& op, GraphFunction& function, Args args) {
  const std::vector<Tensor> inner = inner_of(*this, args);
  Captures local(function.name());
  Captures* noted = captures ? captures : recording_ ? &local : nullptr;
  bool wanted = false;
  std::vector<bool> followed;
  for (const Tensor& t : args) {
    followed.push_back(recording_ && impl(t)->node && wrapper_of(*this, impl(t)));
    if (!followed.back()) continue;
    wanted = true;
    if (captures || function.recompute()) noted->note(impl(t));
  }
  if (uses_only_arguments(function) && (!wanted || captures)) {
    std::vector<Tensor> results = wrapped(*this, call_below(*this, op, function, inner));
    if (wanted) captures->mark(results, this);
    return results;
  }
  RecordRandom random;
  if (wanted && !captures && !function.recompute()) {
    check_covered(function, args, followed, transform, "differentiates");
    if (is_closed(function)) static_cast<ClosedFunction&>(function).follow(followed);
    auto rules = std::make_shared<AtGradLevel>(*with_backward(function, transform), *this, &local);
    GraphFunction::Forward forward;
    {
      BelowLevel below_level(*this);
      const KeepsOlderTensors kept(function.name());
      forward = rules->forward(inner);
    }
    rules->stop_noting();
    local.refuse(function.name(), transform);
    return record_custom({op, std::move(rules), this, args, inner, random.take()}, std::move(forward));
  }
  auto below_it = std::make_shared<AtGradLevel>(function, *this, noted);
  if (function.recompute()) below_it->follow(std::move(followed));
  const std::vector<Tensor> results = call_below(*this, op, *below_it, inner);
  below_it->stop_noting();
  if (noted == &local && function.recompute()) {
    local.check_unchanged(function.name());
    if (!local.empty())
      return record_checkpoint({op, function.shared_from_this(), this, args, inner, random.take()}, results, local);
  } else if (noted == &local) {
    local.refuse(function.name(), transform);
  }
  std::vector<Tensor> own = wrapped(*this, results);
  if (wanted && captures) captures->mark(own, this);
  return own;
}

std::vector<Tensor> JvpLevel::call_graph(const OpEntry& op, GraphFunction& function, Args args) {
  std::vector<Tensor> inner = inner_of(*this, args);
  std::vector<Tensor> tangents;
  std::vector<bool> has_tangent;
  for (const Tensor& t : args) {
    const Wrapper* wrapper = wrapper_of(*this, impl(t));
    has_tangent.push_back(wrapper && wrapper->tangent);
    tangents.push_back(has_tangent.back() ? Tensor::share(wrapper->tangent) : Tensor());
  }
  const bool wanted = std::find(has_tangent.begin(), has_tangent.end(), true) != has_tangent.end();
  if (function.recompute()) {
    for (const Tensor& t : tangents)
      if (t) inner.push_back(t);
    std::vector<bool> with;
    auto pass = std::make_shared<ForwardPass>(function, *this, has_tangent, &with);
    const std::vector<Tensor> found = call_below(*this, op, *pass, inner);
    pass->stop_reporting();
    std::vector<Tensor> results;
    size_t next = with.size();
    for (size_t j = 0; j < with.size(); ++j)
      results.push_back(with[j] ? with_tangent(*this, found[j], found[next++]) : core::wrapped(*this, found[j]));
    return results;
  }
  if (uses_only_arguments(function) && !wanted) return wrapped(*this, call_below(*this, op, function, inner));
  auto constant = std::make_shared<AtJvpLevel>(function, *this);
  if (!wanted) return wrapped(*this, call_below(*this, op, *constant, inner));
  if (!function.has(GraphFunction::Rule::kJvp)) throw_missing_rule(function, transform, "defjvp");
  check_covered(function, args, has_tangent, transform, "differentiates");
  std::vector<Tensor> results;
  BelowLevel below_level(*this);
  for (size_t i = 0; i < inner.size(); ++i)
    if (!function.takes_empty_zeros() && !tangents[i] &&
        BP_DTYPE_BIT(inner[i].dtype()) & (BP_MASK_FLOATING | BP_MASK_COMPLEX))
      tangents[i] = filled(inner[i].shape(), 0.0, inner[i].dtype(), inner[i].device());
  const KeepsOlderTensors kept(function.name());
  const GraphFunction::Duals duals = constant->jvp(inner, tangents);
  check_tangents(function, duals);
  for (size_t j = 0; j < duals.results.size(); ++j)
    results.push_back(duals.tangents[j] ? with_tangent(*this, duals.results[j], duals.tangents[j])
                                        : core::wrapped(*this, duals.results[j]));
  return results;
}

}  // namespace backplane::core
