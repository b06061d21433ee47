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

}  // namespace

Version::Version(Tensor t) : tensor(std::move(t)), version(tensor ? version_now(*impl(tensor)) : 0) {}

void Version::check(const std::string& function) const {
  if (!tensor) return;
  if (impl(tensor)->wrapper && impl(tensor)->view) refresh(impl(tensor));  // its base may have changed since
  const uint32_t now = version_now(*impl(tensor));
  BP_CHECK(now == version, VALUE, function,
           ": a tensor that its backward pass needs was changed in place: it had version ", version, ", now ", now,
           "; use the out-of-place form, or copy the tensor before the change");
}

Captures::~Captures() {
  for (const Edge& edge : edges) release_edge(edge);
}

void Captures::note(TensorImpl* tensor) {
  const Edge edge = edge_to(tensor);
  if (!edge.node) return;
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

void Captures::check_unchanged(const std::string& function) const {
  for (const Version& v : versions)
    BP_CHECK(version_now(*impl(v.tensor)) == v.version, VALUE, function,
             ": changes a tensor in place that was made outside of it and has a gradient; copy it first");
}

void Captures::refuse(const std::string& function, const char* transform) const {
  BP_CHECK(empty(), VALUE, function, ": uses a tensor from outside that ", transform,
           " differentiates, of which its rules say nothing; make it an argument, or use stop_gradient of it");
}

int32_t Captures::find(const Edge& edge) const {
  for (size_t i = 0; i < edges.size(); ++i)
    if (edges[i].node == edge.node && edges[i].output == edge.output) return static_cast<int32_t>(i);
  return -1;
}

}  // namespace backplane::core
