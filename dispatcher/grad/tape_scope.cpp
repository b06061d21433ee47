// A tape inside of a trace: a level of reverse mode that stands between a function and the trace around it. The leaves
// stay the tensors that the function knows; in calls, the level's wrappers stand for them.
#include <algorithm>

#include "backplane/transforms.hpp"
#include "call/dispatch.hpp"
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
  State(std::span<const Tensor> of, const char* transform) : level(transform), leaves(of.begin(), of.end()) {
    level.is_tape = true;
  }

  GradLevel level;
  std::vector<Tensor> leaves;
  std::vector<Tensor> differentiable;  // met by the trace: the leaves, and others
  std::unique_ptr<ReplacedTensors> replaced;

  // The level's wrapper around what stands in the trace for a leaf: its writes reach the leaf.
  Tensor follow(const Tensor& leaf) {
    const Tensor inner = Tensor::share(level.Level::below->stand_in(impl(leaf)));
    Tensor own = level.track(inner);
    impl(own)->wrapper->shared = true;
    return own;
  }

  bool is_leaf(const Tensor& tensor) const {
    return std::any_of(leaves.begin(), leaves.end(), [&](const Tensor& leaf) { return leaf.get() == tensor.get(); });
  }

  void check_outside() const {
    for (const Tensor& t : differentiable)
      BP_CHECK(is_leaf(t), VALUE, "backward: the function uses a tensor of shape ", shape_text(t.shape()),
               " and dtype ", kDtypeNames[t.dtype()],
               " that requires a gradient, but it cannot get one here: it is not part of the state. Fix: add it, or the "
               "module that it belongs to, to the state; or use it under no_grad, or detached");
  }
};

TapeScope::TapeScope(std::span<const Tensor> leaves, const char* transform) {
  CallGuard guard;
  Level* const trace = thread_state.level;
  BP_CHECK(trace && trace->every_call == trace, VALUE, transform, ": its scope has to begin directly inside of a trace");
  state_ = std::make_unique<State>(leaves, transform);
  std::vector<Tensor> own;
  for (const Tensor& leaf : leaves) own.push_back(state_->follow(leaf));
  trace->note_differentiable(&state_->differentiable);
  state_->replaced = std::make_unique<ReplacedTensors>(ReplacedTensors::Pairs{state_->leaves, own}, state_->level);
}

TapeScope::~TapeScope() {
  CallGuard guard;
  if (Level* trace = state_->level.Level::below) trace->note_differentiable(nullptr);
}

Tensor TapeScope::outside(const Tensor& tensor) const {
  TensorImpl* t = impl(tensor);
  const Wrapper* wrapper = wrapper_of(state_->level, t);
  if (!wrapper) return tensor;
  if (t->view) refresh(t);
  return Tensor::share(wrapper->inner);
}

std::vector<Tensor> TapeScope::gradients(const Tensor& root, const Tensor& cotangent, bool retain_graph) {
  CallGuard guard;
  GradLevel& level = state_->level;
  level.check_innermost();
  TensorImpl* t = ReplacedTensors::value_of(impl(root));
  const Wrapper* wrapper = wrapper_of(level, t);
  if (wrapper && t->view) refresh(t);
  BP_CHECK(wrapper && t->node, VALUE,
           "backward: the root does not require a gradient and has no history; set requires_grad on an input");
  state_->check_outside();
  const Tensor inner = Tensor::share(wrapper->inner);
  const Tensor given = cotangent ? outside(cotangent) : Tensor();
  std::vector<Tensor> found(state_->leaves.size());
  const Edge edge = edge_to(t);
  BelowLevel below(level);
  const Tensor seed = seed_of(inner, given);
  TensorImpl* const seeds[] = {impl(seed)};
  struct Release {
    const Edge& edge;
    ~Release() { release_edge(edge); }
  } release_at_end{edge};
  run_backward({{&edge, 1}, seeds, level.inputs, &found, retain_graph, true});
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i]) run_leaf_hooks(impl(state_->leaves[i]), found[i]);
  return found;
}

}  // namespace backplane
