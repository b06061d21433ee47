#include "tape/captures.hpp"

#include "call/dispatch.hpp"
#include "levels/inplace.hpp"
#include "levels/level.hpp"

namespace backplane::core {
namespace {

// Nothing comes through a call whose derivatives are all zero: the result of stop_gradient is a constant.
bool passes_gradients(const Node& node) {
  if (node.kind != Node::Kind::kOp) return true;
  for (size_t i = 0; i < node.op->vjp_of_arg.size(); ++i) {
    if (!(node.needs >> (i < 63 ? i : 63) & 1)) continue;
    const bp_formula* formula = node.op->vjp_of_arg[i];
    if (!formula || !(formula->flags & BP_FORMULA_ZERO)) return true;
  }
  return false;
}

// The history of a tensor that a run made and did not record.
class Unrecorded final : public GraphStep {
 public:
  explicit Unrecorded(std::string function) : function_(std::move(function)) { n_results = 1; }
  void backward(Node*, const bp_value*, std::vector<Tensor>&, bool) override {
    detail::fail(BP_ERROR_VALUE, function_,
                 ": a tensor made inside it is used outside of it. A checkpoint "
                 "keeps only the derivatives of its results. Fix: return the tensor from ",
                 function_, " and use that result, or keep its detach() where no derivative is wanted");
  }
  void release() noexcept override {}
  void visit(OwnedVisitor&) const override {}
  bool leads_everywhere() const noexcept override { return true; }

 private:
  std::string function_;
};

// Users of a marked tensor lie above every input, so that no backward pass leaves the mark out.
constexpr uint32_t kDepthOfMark = uint32_t{1} << 30;

}  // namespace

Version::Version(Tensor t) : tensor(std::move(t)), version(tensor ? version_now(*impl(tensor)) : 0) {}

void Version::check(const std::string& function) const {
  if (!tensor) return;
  if (impl(tensor)->wrapper && impl(tensor)->view) refresh(impl(tensor));  // its base may have changed since
  const uint32_t now = version_now(*impl(tensor));
  BP_CHECK(now == version, VALUE, function,
           ": a tensor that its backward pass needs was changed in place: it had version ", version, ", now ", now,
           ". Fix: use the out-of-place form, or copy the tensor before the change");
}

Captures::~Captures() {
  for (const Edge& edge : edges) release_edge(edge);
  if (mark_) release(mark_);
}

// What reads views anew records also in a run that notes, above the mark.
bool Captures::is_made_here(Node* node) const {
  std::vector<Node*> open{node};
  while (mark_ && !open.empty()) {
    Node* next = open.back();
    open.pop_back();
    if (next == mark_) return true;
    if (next->depth <= kDepthOfMark) continue;
    for (uint32_t e = 0; e < next->n_edges; ++e)
      if (Node* of = next->edges()[e].node) open.push_back(of);
  }
  return false;
}

void Captures::note(TensorImpl* tensor) {
  const Edge edge = edge_to(tensor);
  if (!edge.node) return;
  if (is_made_here(edge.node)) return release_edge(edge);
  if (!passes_gradients(*edge.node)) return release_edge(edge);
  if (!seen_.emplace(edge.node, edge.output).second) return release_edge(edge);
  edges.push_back(edge);
  versions.emplace_back(Tensor::share(tensor));
}

void Captures::note(const Call& call, const Level* level) {
  for (int32_t i = 0; i < call.n_args; ++i) {
    const bp_formula* formula = call.op.vjp_of_arg[static_cast<size_t>(i)];
    if (formula && (formula->flags & BP_FORMULA_ZERO)) continue;  // no gradient passes
    each_tensor(&call.args[i], 1, [&](TensorImpl* t) {
      if (level ? t->node && wrapper_of(*level, t) : wants_grad(t)) note(t);
    });
  }
}

void Captures::mark(TensorImpl* result, const Level* level) {
  if (!is_inexact(result->dtype) || result->node || (result->autograd && result->autograd->requires_grad)) return;
  if (!mark_) {
    mark_ = new_node(Node::Kind::kGraph, 0, 0, 0);
    mark_->graph = new Unrecorded(function_);
    mark_->depth = kDepthOfMark;
  }
  set_history(result, mark_, 0, level ? 0 : kTapeKey);
}

void Captures::mark(const Call& call, const Level* level) {
  bool follows = false;
  for (int32_t i = 0; i < call.n_args && !follows; ++i) {
    const bp_formula* formula = call.op.vjp_of_arg[static_cast<size_t>(i)];
    if (formula && (formula->flags & BP_FORMULA_ZERO)) continue;
    each_tensor(&call.args[i], 1, [&](TensorImpl* t) {
      follows = follows || (level ? t->node && wrapper_of(*level, t) : wants_grad(t));
    });
  }
  for (int32_t j = 0; follows && j < call.n_outs; ++j) {
    if (call.op.record->results[static_cast<size_t>(j)].flags & BP_RESULT_NONDIFF) continue;
    each_tensor(&call.outs[j], 1, [&](TensorImpl* t) {
      for (; t; t = !level && t->view ? t->view->base : nullptr) {
        mark(t, level);
        if (!(call.outs[j].flags & BP_VALUE_GIVEN)) return;
      }
    });
  }
}

void Captures::mark(std::span<const Tensor> results, const Level* level) {
  for (const Tensor& t : results) mark(impl(t), level);
}

void Captures::check_unchanged(const std::string& function) const {
  for (const Version& v : versions)
    BP_CHECK(version_now(*impl(v.tensor)) == v.version, VALUE, function,
             ": changes a tensor in place that was made outside of it and has a gradient; copy it first");
}

void Captures::refuse(const std::string& function, const char* transform) const {
  BP_CHECK(empty(), VALUE, function, ": uses a tensor from outside that ", transform,
           " differentiates, and which its rules do not cover. Fix: make it an argument, or use stop_gradient of it");
}

int32_t Captures::find(const Edge& edge) const {
  for (size_t i = 0; i < edges.size(); ++i)
    if (edges[i].node == edge.node && edges[i].output == edge.output) return static_cast<int32_t>(i);
  return -1;
}

}  // namespace backplane::core
