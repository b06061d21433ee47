// Functions under a batching level: by the function's own rule, or as a function over all rows for the levels below, so
// that a gradient below keeps the rules that the function has.
#include "functions/graph_batch.hpp"

#include <algorithm>

#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"
#include "functions/closed_function.hpp"
#include "functions/closed_over.hpp"
#include "functions/graph_levels.hpp"
#include "functions/graph_rules.hpp"
#include "record/dtype_rules.hpp"
#include "tape/engine.hpp"
#include "tape/node.hpp"

namespace backplane::core {
namespace {

bool any(const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), true) != flags.end(); }

// The sum over the batch. If `t` is not batched, its rows are equal, and the sum is `size` times `t`.
Tensor summed(const Tensor& t, bool batched, int64_t size) {
  constexpr int64_t kRows[] = {0};
  return roles::sum(impl(batched ? t : roles::repeated(impl(t), size)), kRows);
}

bool is_batched(const Level& level, const Tensor& t) {
  const Wrapper* wrapper = t ? wrapper_of(level, impl(t)) : nullptr;
  return wrapper && wrapper->batched;
}

// Takes results out of the level; `batched` says of each whether it has the batch.
std::vector<Tensor> left(const Level& level, const std::vector<Tensor>& results, std::vector<bool>& batched) {
  std::vector<Tensor> inner;
  batched.clear();
  for (const Tensor& t : results) {
    inner.push_back(inner_of(level, t));
    batched.push_back(is_batched(level, t));
  }
  return inner;
}

void give_batch(const Level& level, std::vector<Tensor>& inner, std::vector<bool>& batched,
                const std::vector<bool>& wanted, int64_t size) {
  BelowLevel below(level);
  for (size_t j = 0; j < inner.size(); ++j)
    if (wanted[j] && !batched[j] && inner[j]) inner[j] = roles::repeated(impl(inner[j]), size);
  batched = wanted;
}

// What a forward pass leaves for the backward one beside the residual tensors.
struct RowsRest {
  std::shared_ptr<const void> rest;
  std::vector<bool> residuals_batched, results_batched;
};

void check_count(const std::string& name, size_t found, size_t expected) {
  BP_CHECK(found == expected, VALUE, name, ": its backward rule returned ", found,
           " cotangents; expected one per argument, ", expected);
}

}  // namespace

std::vector<Tensor> OverRows::call(Args args) {
  BatchLevel level(transform_, serial_, size_, randomness_);
  const Arguments arguments(level, args, batched_);
  std::vector<bool> have;
  std::vector<Tensor> results = left(level, inner_->call(arguments.tensors), have);
  arguments.check_unchanged(*this, level);
  if (has(Rule::kBackward)) give_batch_to_all(level, results, have);
  if (report_) *report_ = std::move(have);
  return results;
}

// Where an argument or a result has the batch, all results of a function with rules get it: the rule of each row sees
// the cotangents of its row, for a result that is the same for all rows too.
void OverRows::give_batch_to_all(const Level& level, std::vector<Tensor>& results, std::vector<bool>& have) const {
  if (any(have) || any(batched_)) give_batch(level, results, have, std::vector<bool>(have.size(), true), size_);
}

// An argument without the batch gets the sum over rows.
GraphFunction::Forward OverRows::forward(Args args) {
  BatchLevel level(transform_, serial_, size_, randomness_);
  const Arguments arguments(level, args, batched_);
  Forward rows = with_backward(*inner_, transform_)->forward(arguments.tensors);
  arguments.check_unchanged(*this, level);
  auto rest = std::make_shared<RowsRest>();
  rest->rest = std::move(rows.residuals.rest);
  std::vector<bool>& have = rest->results_batched;
  Forward all{left(level, rows.results, have), {}, std::move(rows.constant)};
  all.residuals.tensors = left(level, rows.residuals.tensors, rest->residuals_batched);
  give_batch_to_all(level, all.results, have);
  if (report_) *report_ = have;
  all.residuals.rest = std::move(rest);
  return all;
}

std::vector<Tensor> OverRows::backward(const Residuals& residuals, Args cotangents) {
  const auto& rest = *static_cast<const RowsRest*>(residuals.rest.get());
  BatchLevel level(transform_, serial_, size_, randomness_);
  const std::vector<Tensor> g = entered(level, cotangents, rest.results_batched);
  std::vector<bool> have;
  std::vector<Tensor> found =
      left(level,
           with_backward(*inner_, transform_)
               ->backward({entered(level, residuals.tensors, rest.residuals_batched), rest.rest}, g),
           have);
  check_count(name(), found.size(), batched_.size());
  const bool rows_differ = any(rest.results_batched);
  BelowLevel below(level);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    if (batched_[i])
      found[i] = have[i] ? found[i] : roles::repeated(impl(found[i]), size_);
    else if (have[i] || rows_differ)
      found[i] = summed(found[i], have[i], size_);
  }
  return found;
}

GraphFunction::Duals OverRows::jvp(Args primals, Args tangents) {
  BatchLevel level(transform_, serial_, size_, randomness_);
  const Arguments arguments(level, primals, batched_);
  std::vector<Tensor> moved(tangents.begin(), tangents.end());
  {
    BelowLevel below(level);
    for (size_t i = 0; i < moved.size() && !inner_->takes_empty_zeros(); ++i)
      if (!moved[i] && is_inexact(primals[i].dtype()))
        moved[i] = filled(primals[i].shape(), 0.0, primals[i].dtype(), primals[i].device());
  }
  Duals rows = inner_->jvp(arguments.tensors, entered(level, moved, batched_));
  arguments.check_unchanged(*this, level);
  BP_CHECK(rows.results.size() == rows.tangents.size(), VALUE, name(), ": its jvp rule returned ", rows.tangents.size(),
           " tangents for ", rows.results.size(), " results; expected one per result");
  std::vector<bool> of_results, of_tangents;
  Duals all{left(level, rows.results, of_results), left(level, rows.tangents, of_tangents)};
  const std::vector<bool> either(of_results.size(), any(of_results) || any(of_tangents) || any(batched_));
  give_batch(level, all.results, of_results, either, size_);
  give_batch(level, all.tangents, of_tangents, either, size_);
  if (report_) *report_ = either;
  return all;
}

std::vector<Tensor> BatchLevel::call_graph(const OpEntry& op, GraphFunction& function, Args args) {
  const std::vector<Tensor> inner = inner_of(*this, args);
  std::vector<bool> batched;
  for (const Tensor& t : args) batched.push_back(is_batched(*this, t));
  std::vector<Tensor> results;
  std::vector<bool> results_batched;
  if (any(batched) && function.has(GraphFunction::Rule::kBatch)) {
    check_covered(function, args, batched, transform, "batches");
    BelowLevel below(*this);
    GraphFunction::Batched found = function.batch(size, batched, inner);
    BP_CHECK(found.batched.size() == found.results.size(), VALUE, function.name(), ": its batch rule returned ",
             found.results.size(), " results and ", found.batched.size(), " words on which have the batch");
    for (size_t j = 0; j < found.results.size(); ++j)
      BP_CHECK(!found.batched[j] || (found.results[j].ndim() > 0 && found.results[j].shape()[0] == size), SHAPE,
               function.name(), ": its batch rule says that result ", j, " has the batch, of size ", size,
               ", at axis 0, but the result does not have it");
    results = std::move(found.results);
    results_batched = std::move(found.batched);
  } else if (uses_only_arguments(function) && !any(batched)) {
    BelowLevel below(*this);
    results = core::call_graph(op, function, inner);
    results_batched.assign(results.size(), false);
  } else {
    auto rows = std::make_shared<OverRows>(function, *this, std::move(batched), &results_batched);
    BelowLevel below(*this);
    results = core::call_graph(op, *rows, inner);
    rows->stop_reporting();
  }
  std::vector<Tensor> outer;
  for (size_t j = 0; j < results.size(); ++j) outer.push_back(wrapped(*this, results[j], results_batched[j]));
  return outer;
}

}  // namespace backplane::core
