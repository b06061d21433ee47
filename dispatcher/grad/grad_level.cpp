#include "grad/grad_level.hpp"

#include "call/dispatch.hpp"
#include "call/formulas/decomposition.hpp"
#include "levels/inplace.hpp"
#include "memory/process/epoch.hpp"
#include "record/dtype_rules.hpp"
#include "tape/captures.hpp"
#include "tape/engine.hpp"
#include "tape/record.hpp"
#include "tape/sites.hpp"

namespace backplane::core {
namespace {

// Where all that have one meet a derivative that is zero, the results are constants: those of stop_gradient.
bool has_history(const Level& level, const Call& call) {
  for (int32_t i = 0; i < call.n_args; ++i) {
    const bp_formula* formula = call.op.vjp_of_arg[static_cast<size_t>(i)];
    if (formula && (formula->flags & BP_FORMULA_ZERO)) continue;
    bool any = false;
    each_tensor(call.args + i, 1, [&](TensorImpl* t) { any = any || (t->node && wrapper_of(level, t)); });
    if (any) return true;
  }
  return false;
}

void release_edges(std::vector<Edge>& edges) {
  for (const Edge& edge : edges) release_edge(edge);
  edges.clear();
}

Tensor zeros_like(const Tensor& t) { return filled(t.shape(), 0.0, t.dtype(), t.device()); }

}  // namespace

GradLevel::~GradLevel() { release_edges(inputs); }

PullbackState::~PullbackState() {
  release_edges(root_edges);
  release_edges(inputs);
}

Tensor GradLevel::track(const Tensor& input) {
  const size_t i = inputs.size();
  BP_CHECK(BP_DTYPE_BIT(input.dtype()) & (BP_MASK_FLOATING | BP_MASK_COMPLEX), DTYPE, transform, ": input ", i,
           " is of dtype ", kDtypeNames[input.dtype()],
           "; only floating and complex tensors have gradients: cast it, or leave it out of argnums");
  retain(impl(input));
  Tensor wrapped = Tensor::adopt(wrap(*this, impl(input)));
  Node* leaf = new_node(Node::Kind::kLeaf, 0, 0, 0);
  leaf->n_outs = 1;
  set_history(impl(wrapped), leaf, 0, 0);
  inputs.push_back({leaf, 0});  // takes over the first reference
  below.push_back(input);
  return wrapped;
}

void GradLevel::check_write(const Call& call, const TensorImpl& target) {
  if (!target.wrapper->shared || !recording_) return;
  BP_CHECK(!target.node, VALUE, call.op.record->name,
           ": an in-place change of a tensor that requires a gradient and is a leaf; use the out-of-place form, or "
           "change it with gradients off (no_grad)");
  BP_CHECK(!has_history(*this, call), VALUE, call.op.record->name,
           ": writes a value that depends on a tensor that requires a gradient into an argument of the function. Fix: "
           "copy the argument first, or write under no_grad");
}

void GradLevel::handle(const Call& call) {
  bool wanted = recording_ && (!is_passive || notes_suspended) && has_history(*this, call);
  const bool noted = wanted && captures && !notes_suspended;
  if (noted) {
    captures->note(call, this);
    wanted = false;
  }
  if (wanted && call.op.derivative == Derivative::kDecompose) {
    if (!record_recomputed(call, this)) call_decomposition(call);
    return;
  }
  Unwrapped inner(*this, call);
  {
    BelowLevel below_level(*this);
    dispatch({call.op, inner.args, call.n_args, call.outs, call.n_outs, call.mask});
  }
  if (wanted) refuse_lists(call, transform);
  bp_value outs[kMaxResults];
  TensorImpl* results[kMaxResults];
  for (int32_t j = 0; j < call.n_outs; ++j) {
    outs[j] = call.outs[j];
    results[j] = nullptr;
    if (outs[j].tag != BP_TAG_TENSOR) continue;
    results[j] = wrap(*this, impl(outs[j].u.t));
    call.outs[j].u.t = results[j];
  }
  if (noted) captures->mark(call, this);
  if (wanted) record_node({call.op, inner.args, outs, call.args, results, nullptr, 0, false, this});
  for (int32_t j = 0; wanted && trace_sites && j < call.n_outs; ++j)
    if (results[j] && results[j]->node) trace_sites->note(*results[j]->node);
}

}  // namespace backplane::core

namespace backplane {

using namespace core;

GradScope::GradScope(const char* transform) : level_(std::make_unique<GradLevel>(transform)) {}
GradScope::~GradScope() = default;

Tensor GradScope::enter(const Tensor& input) {
  CallGuard guard;
  level_->check_active();
  return level_->track(input);
}

Pullback GradScope::leave(std::span<Tensor> results, size_t n_roots) {
  CallGuard guard;
  level_->check_innermost();
  auto state = std::make_shared<PullbackState>();
  state->transform = level_->transform;
  for (size_t i = 0; i < results.size(); ++i) {
    TensorImpl* t = impl(results[i]);
    Wrapper* wrapper = wrapper_of(*level_, t);
    if (wrapper && t->view) refresh(t);
    if (i < n_roots) {
      state->roots.push_back(results[i]);
      state->root_edges.push_back(wrapper ? edge_to(t) : Edge{nullptr, 0});
    }
    if (wrapper) results[i] = Tensor::share(wrapper->inner);
  }
  level_->end();
  state->inputs.swap(level_->inputs);
  state->below.swap(level_->below);
  Pullback pullback;
  pullback.state_ = std::move(state);
  return pullback;
}

namespace {
const PullbackState& held(const std::shared_ptr<PullbackState>& state) {
  BP_CHECK(state, VALUE, "pullback: found an empty (default-constructed) Pullback; expected one that vjp returned");
  return *state;
}
}  // namespace

std::vector<Tensor> Pullback::operator()(std::span<const Tensor> cotangents, bool keep) const {
  CallGuard guard;
  const PullbackState& s = held(state_);
  BP_CHECK(cotangents.size() == s.roots.size(), VALUE, s.transform, ": the pullback takes ", s.roots.size(),
           " cotangents, one per result; found ", cotangents.size());
  std::vector<Edge> edges;
  std::vector<TensorImpl*> seeds;
  for (size_t i = 0; i < cotangents.size(); ++i) {
    if (!cotangents[i]) continue;
    const Tensor& root = s.roots[i];
    BP_CHECK(same_shape(*cotangents[i].get(), *root.get()), SHAPE, s.transform, ": cotangent ", i,
             " does not have the shape of its result");
    BP_CHECK(cotangents[i].dtype() == root.dtype(), DTYPE, s.transform, ": cotangent ", i, " is of dtype ",
             kDtypeNames[cotangents[i].dtype()], ", its result of ", kDtypeNames[root.dtype()]);
    if (!s.root_edges[i].node) continue;
    edges.push_back(s.root_edges[i]);
    seeds.push_back(impl(cotangents[i]));
  }
  std::vector<Tensor> found(s.inputs.size());
  if (!edges.empty()) run_backward({edges, seeds, s.inputs, &found, keep, true});
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i]) found[i] = zeros_like(s.below[i]);
  return found;
}

std::vector<Tensor> Pullback::of_one() const {
  const PullbackState& s = held(state_);
  BP_CHECK(s.roots.size() == 1 && s.roots[0].ndim() == 0, SHAPE, s.transform, ": of_one: the pullback is of ",
           s.roots.size(), s.roots.size() == 1 ? " result with dimensions" : " results",
           "; expected one without dimensions: call it with a cotangent per result");
  const Tensor& root = s.roots[0];
  const Tensor one = filled(root.shape(), 1.0, root.dtype(), root.device());
  return (*this)({&one, 1}, false);
}

static std::vector<Tensor> entered(GradScope& scope, std::span<const Tensor> inputs) {
  std::vector<Tensor> all;
  for (const Tensor& input : inputs) all.push_back(scope.enter(input));
  return all;
}

ValuesAndPullback vjp(const Function& function, std::span<const Tensor> inputs) {
  check_function(function, "vjp");
  GradScope scope("vjp");
  ValuesAndPullback result;
  const std::vector<Tensor> inside = entered(scope, inputs);
  result.values = function(inside);
  result.pullback = scope.leave(result.values, result.values.size());
  return result;
}

ValuesAndGradients value_and_grad(const Function& function, std::span<const Tensor> inputs) {
  check_function(function, "grad");
  GradScope scope("grad");
  ValuesAndGradients result;
  const std::vector<Tensor> inside = entered(scope, inputs);
  result.values = function(inside);
  BP_CHECK(!result.values.empty(), VALUE, "grad: the function returned nothing to differentiate");
  const Tensor& loss = result.values[0];
  BP_CHECK(loss.ndim() == 0, SHAPE, "grad: the function returned a tensor of ", loss.ndim(),
           " dimensions; expected one without: reduce it, or use vjp");
  BP_CHECK(BP_DTYPE_BIT(loss.dtype()) & (BP_MASK_FLOATING | BP_MASK_COMPLEX), DTYPE,
           "grad: the function returned a tensor of dtype ", kDtypeNames[loss.dtype()], "; expected a floating one");
  Pullback pullback = scope.leave(result.values, 1);
  result.gradients = pullback.of_one();
  return result;
}

}  // namespace backplane
