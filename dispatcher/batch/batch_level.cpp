#include "batch/batch_level.hpp"

#include "batch/batch_loop.hpp"
#include "batch/batch_random.hpp"
#include "batch/batch_stated.hpp"
#include "call/dispatch.hpp"
#include "call/formulas/decomposition.hpp"
#include "call/formulas/role_calls.hpp"
#include "levels/inplace.hpp"
#include "memory/process/epoch.hpp"
#include "record/owned_value.hpp"

namespace backplane::core {
namespace {

void wrap_results(const Level& level, const Call& call, bool batched) {
  for (int32_t j = 0; j < call.n_outs; ++j)
    if (call.outs[j].tag == BP_TAG_TENSOR) call.outs[j].u.t = wrap(level, impl(call.outs[j].u.t), batched);
}

void check_rows(const BatchedCall& c) {
  ShapeResult row;
  for (int32_t j = 0; j < c.call.n_outs; ++j) c.infer_row(j, row);
}

// If the call on one row would fail too, report that failure.
void run_elementwise(BatchedCall& c) {
  try {
    c.call.op.batch.derived(c, nullptr);
  } catch (const Error&) {
    check_rows(c);
    throw;
  }
}

void run_derived(BatchedCall& c) {
  ShapeResult row;
  c.infer_row(0, row);
  c.call.op.batch.derived(c, &row);
}

void apply_rule(BatchedCall& c) {
  using Kind = BatchRule::Kind;
  const BatchRule& rule = c.call.op.batch;
  BelowLevel below(c.level);
  if (rule.kind == Kind::kDerived) return rule.elementwise ? run_elementwise(c) : run_derived(c);
  if (rule.kind != Kind::kStated && rule.kind != Kind::kLoop) refuse_batch(c);
  // Where no rule states the shape of a row, a stated formula decides alone.
  if (!(c.call.op.flags & BP_OP_DYNAMIC)) {
    check_rows(c);
    if (c.size() == 0) return no_rows(c);
  }
  if (rule.kind == Kind::kStated) return run_stated(c);
  run_loop(c);
}

}  // namespace

BatchLevel::BatchLevel(const char* name, int64_t rows, Randomness policy)
    : Level(name), size(rows), randomness(policy) {
  BP_CHECK(rows >= 0, VALUE, name, ": found a batch of size ", rows, " is impossible");
}

void BatchLevel::handle(const Call& call) {
  BatchedCall batched(*this, call);
  bool rows_differ = batched.any;
  if (call.op.flags & BP_OP_RANDOM) [[unlikely]] {
    if (batched.any && call.op.batch.kind == BatchRule::Kind::kDecompose) return call_decomposition(call);
    rows_differ = run_random(batched);
  } else if (!batched.any) {
    BelowLevel below(*this);
    batched.run();
  } else {
    if (call.op.batch.kind != BatchRule::Kind::kDecompose) {
      apply_rule(batched);
    } else if (rows_have_kernel(batched)) {
      const BelowLevel below(*this);
      run_rows(batched);
    } else {
      return call_decomposition(call);
    }
  }
  wrap_results(*this, call, rows_differ);
}

Tensor BatchLevel::enter(const Tensor& input, int32_t axis) {
  const int32_t argument = entered_++;
  const DLTensor& x = input.held()->dl;
  BP_CHECK(axis >= -x.ndim && axis < x.ndim, INDEX, transform, ": axis ", axis, " is out of range for argument ",
           argument, ", which has ", x.ndim, x.ndim == 1 ? " dim" : " dims");
  if (axis < 0) axis += x.ndim;
  BP_CHECK(x.shape[axis] == size, SHAPE, transform, ": argument ", argument, " has size ", x.shape[axis],
           " along axis ", axis, "; expected ", size, ", the size of the batch");
  TensorImpl* inner = impl(input);
  if (axis == 0) {
    retain(inner);
  } else {
    BelowLevel below(*this);
    int64_t axes[kMaxRank];
    axes[0] = axis;
    for (int32_t d = 0, k = 1; d < x.ndim; ++d)
      if (d != axis) axes[k++] = d;
    inner = impl(roles::permute(inner, {axes, static_cast<size_t>(x.ndim)}).detach_handle());
  }
  return Tensor::adopt(wrap(*this, inner, true));
}

Tensor BatchLevel::enter_shared(const Tensor& input) {
  ++entered_;
  retain(impl(input));
  TensorImpl* t = wrap(*this, impl(input));
  t->wrapper->shared = true;
  return Tensor::adopt(t);
}

void BatchLevel::check_write(const Call& call, const TensorImpl& target) {
  if (!target.wrapper->shared) return;
  each_tensor(call.args, call.n_args, [&](const TensorImpl* t) {
    const Wrapper* wrapper = wrapper_of(*this, t);
    BP_CHECK(!wrapper || !wrapper->batched, VALUE, call.op.record->name, ": a value of ", transform,
             " cannot be written into an argument that ", transform,
             " does not map, which has one value for all rows. Fix: write into a copy that is made inside, copy(x) or "
             "x.clone(), or map the argument");
  });
}

Tensor BatchLevel::leave(const Tensor& result, std::optional<int32_t> axis) {
  const int32_t which = left_++;
  TensorImpl* t = impl(result);
  Wrapper* wrapper = wrapper_of(*this, t);
  if (wrapper && t->view) refresh(t);
  Tensor inner = wrapper ? Tensor::share(wrapper->inner) : result;
  const bool batched = wrapper && wrapper->batched;
  if (!axis) {
    BP_CHECK(!batched, VALUE, transform, ": result ", which,
             " differs from row to row of the batch, but its out axis is None. Fix: give it an axis");
    return inner;
  }
  const int32_t ndim = t->dl.ndim + 1;
  BP_CHECK(*axis >= -ndim && *axis < ndim, INDEX, transform, ": out axis ", *axis, " is out of range for result ",
           which, ", which has ", ndim, ndim == 1 ? " dim" : " dims", " with the batch");
  BP_CHECK(ndim <= kMaxRank, SHAPE, transform, ": result ", which, " would have ", ndim, " dims; at most ", kMaxRank,
           " are allowed");
  BelowLevel below(*this);
  if (!batched) inner = roles::repeated(impl(inner), size);
  const int32_t to = *axis < 0 ? *axis + ndim : *axis;
  if (to == 0) return inner;
  int64_t axes[kMaxRank];
  for (int32_t d = 0; d < ndim; ++d) axes[d] = d < to ? d + 1 : d == to ? 0 : d;
  return roles::permute(impl(inner), {axes, static_cast<size_t>(ndim)});
}

}  // namespace backplane::core

namespace backplane {

using namespace core;

BatchScope::BatchScope(int64_t size, Randomness randomness, const char* transform)
    : level_(std::make_unique<BatchLevel>(transform, size, randomness)) {}
BatchScope::~BatchScope() = default;

Tensor BatchScope::enter(const Tensor& input, int32_t axis) {
  CallGuard guard;
  level_->check_active();
  return level_->enter(input, axis);
}

Tensor BatchScope::enter_shared(const Tensor& input) {
  CallGuard guard;
  level_->check_active();
  return level_->enter_shared(input);
}

Tensor BatchScope::leave(const Tensor& result, std::optional<int32_t> axis) {
  CallGuard guard;
  level_->check_innermost();
  return level_->leave(result, axis);
}

std::vector<Tensor> vmap(const Function& function, std::span<const Tensor> inputs, Randomness randomness) {
  check_function(function, "vmap");
  BP_CHECK(!inputs.empty(), VALUE, "vmap: found no input, expected one: its first axis gives the size of the batch");
  BP_CHECK(inputs[0].ndim() > 0, INDEX, "vmap: axis 0 is out of range for argument 0, which has 0 dims");
  BatchScope scope(inputs[0].shape()[0], randomness);
  std::vector<Tensor> entered;
  for (const Tensor& input : inputs) entered.push_back(scope.enter(input, 0));
  std::vector<Tensor> results = function(entered);
  for (Tensor& result : results) result = scope.leave(result, 0);
  return results;
}

}  // namespace backplane
