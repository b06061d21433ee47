// A tape inside of a trace: a level of reverse mode that stands between a function and the trace around it. The leaves
// stay the tensors that the function knows; in calls, the level's wrappers stand for them.
#include "backplane/transforms.hpp"

#include <algorithm>

#include "backplane/autograd.hpp"
#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"
#include "grad/grad_level.hpp"
#include "levels/inplace.hpp"
#include "levels/replaced_tensors.hpp"
#include "memory/process/epoch.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"
#include "tape/engine.hpp"

namespace backplane {

using namespace core;

struct TapeScope::State {
  explicit State(const char* transform) : level(transform), replaced({}, level) { level.is_tape = true; }

  GradLevel level;
  std::vector<Tensor> leaves;          // those now, and those before
  std::vector<Tensor> wrappers;        // what stands for each in calls
  std::vector<Tensor> differentiable;  // from outside, met by the trace
  ReplacedTensors replaced;

  size_t place_of(const Tensor& leaf) const {
    const auto is_it = [&](const Tensor& known) { return known.get() == leaf.get(); };
    return static_cast<size_t>(std::find_if(leaves.begin(), leaves.end(), is_it) - leaves.begin());
  }
  bool is_leaf(const Tensor& tensor) const { return place_of(tensor) < leaves.size(); }

  // What the tensor is in the trace, whose writes reach it.
  Tensor below(const Tensor& tensor) {
    TensorImpl* t = impl(tensor);
    if (const Wrapper* wrapper = wrapper_of(level, t)) return Tensor::share(wrapper->inner);
    return Tensor::share(level.Level::below->stand_in(t));
  }

  void add_leaf(const Tensor& tensor) {
    wrappers.push_back(level.track(below(tensor)));
    leaves.push_back(tensor);
    impl(wrappers.back())->wrapper->shared = true;
  }

  void check_outside() const {
    for (const Tensor& t : differentiable)
      BP_CHECK(is_leaf(t), VALUE, "backward: the function uses a tensor of shape ", shape_text(t.shape()),
               " and dtype ", kDtypeNames[t.dtype()],
               " that requires a gradient, and is not a parameter in the state. Fix: add it, or the module that it "
               "belongs to, to the state; or call requires_grad_(False) on it, or use it under no_grad");
  }
};

TapeScope::TapeScope(std::span<const Tensor> leaves, const char* transform) {
  CallGuard guard;
  Level* const trace = thread_state.level;
  BP_CHECK(trace && trace->every_call == trace, VALUE, transform,
           ": its scope has to begin directly inside of a trace");
  state_ = std::make_unique<State>(transform);
  for (const Tensor& leaf : leaves) follow(leaf, true);
  trace->note_differentiable(&state_->differentiable);
}

TapeScope::~TapeScope() {
  CallGuard guard;
  if (Level* trace = state_->level.Level::below) trace->note_differentiable(nullptr);
}

void TapeScope::follow(const Tensor& tensor, bool wanted) {
  CallGuard guard;
  state_->level.check_innermost();
  TensorImpl* t = impl(tensor);
  if (wrapper_of(state_->level, t) && t->view) refresh(t);
  BP_CHECK(!t->node, VALUE, "requires_grad: may be set only on a leaf; this tensor was made by ", node_name(tensor),
           ": use detach()");
  const bool is_argument = wrapper_of(state_->level, t) && t->wrapper->shared;
  BP_CHECK(!is_argument, VALUE,
           "requires_grad: an argument of a compiled function cannot become a leaf for its caller. Fix: "
           "x = x.detach().requires_grad_(), or do it before the call");
  const size_t place = state_->place_of(tensor);
  if (wanted && place == state_->leaves.size()) state_->add_leaf(tensor);
  if (place < state_->leaves.size()) state_->replaced.replace(tensor, wanted ? state_->wrappers[place] : Tensor());
}

Tensor TapeScope::inside(const Tensor& argument) {
  CallGuard guard;
  state_->level.check_innermost();
  const Tensor inner = state_->below(argument);
  retain(impl(inner));
  Tensor own = Tensor::adopt(wrap(state_->level, impl(inner)));
  impl(own)->wrapper->shared = true;
  return own;
}

Tensor TapeScope::outside(const Tensor& tensor) const {
  TensorImpl* t = impl(tensor);
  const Wrapper* wrapper = wrapper_of(state_->level, t);
  if (!wrapper) return tensor;
  if (t->view) refresh(t);
  return Tensor::share(wrapper->inner);
}

namespace {

struct Edges {
  std::vector<Edge> all;
  ~Edges() {
    for (const Edge& edge : all) release_edge(edge);
  }
};

// Does nobody else know the tensor, which a call in the trace computed? Else a change of the gradient in place would
// change an input, or the gradient of another leaf.
bool is_own(const Tensor& gradient) {
  const TensorImpl* t = impl(gradient);
  return t->wrapper && !t->view && t->refs.load(std::memory_order_relaxed) == 1;
}

// The level's tensor that stands for this one, or is it; empty where the level does not follow it.
Tensor followed(const GradLevel& level, const Tensor& tensor) {
  TensorImpl* t = ReplacedTensors::value_of(impl(tensor));
  if (!wrapper_of(level, t)) return {};
  if (t->view) refresh(t);
  return t->node ? Tensor::share(t) : Tensor();
}

}  // namespace

std::vector<Tensor> TapeScope::gradients(std::span<const Tensor> roots, std::span<const Tensor> cotangents,
                                         std::span<const Tensor> inputs, bool retain_graph) {
  CallGuard guard;
  GradLevel& level = state_->level;
  level.check_innermost();
  Edges from, to;
  std::vector<Tensor> inner, seeds, found(inputs.size());
  for (const Tensor& root : roots) {
    const Tensor own = followed(level, root);
    BP_CHECK(own, VALUE,
             "backward: the root does not require a gradient and has no history; set requires_grad on an input");
    from.all.push_back(edge_to(impl(own)));
    inner.push_back(Tensor::share(impl(own)->wrapper->inner));
  }
  for (const Tensor& input : inputs) {
    const Tensor own = followed(level, input);
    BP_CHECK(own, VALUE, "gradients: input ", to.all.size(), " does not require a gradient");
    to.all.push_back(edge_to(impl(own)));
  }
  state_->check_outside();
  std::vector<TensorImpl*> first;
  BelowLevel below(level);
  for (size_t i = 0; i < roots.size(); ++i) {
    seeds.push_back(seed_of(inner[i], cotangents[i] ? outside(cotangents[i]) : Tensor()));
    first.push_back(impl(seeds.back()));
  }
  run_backward({from.all, first, to.all, &found, retain_graph, true});
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    if (!is_own(found[i])) found[i] = roles::copy(impl(found[i]));
    if (state_->is_leaf(inputs[i])) run_leaf_hooks(impl(inputs[i]), found[i]);
  }
  return found;
}

}  // namespace backplane
