// The public interface of reverse mode: settings, leaves, hooks, backward.
#include "backplane/autograd.hpp"

#include "levels/level.hpp"
#include "memory/process/epoch.hpp"
#include "record/dtype_rules.hpp"
#include "tape/engine.hpp"
#include "tape/node.hpp"

namespace backplane {

using namespace core;

namespace {

std::atomic<uint64_t> next_hook{1};

// A view may have come to its base's history since it was taken.
TensorImpl* with_history(const Tensor& tensor) {
  TensorImpl* t = impl(tensor);
  if (is_stale(*t)) refresh_view(t);
  return t;
}

// Does a chain of gradients from `grad` meet the tensor?
bool leads_to(Tensor grad, const Tensor& tensor) {
  while (grad && grad.get() != tensor.get()) grad = grad_of(grad);
  return static_cast<bool>(grad);
}

void check_outside_levels(const char* who) {
  BP_CHECK(!thread_state.level, VALUE, who, ": cannot run inside a functional transform; use grad() or vjp() there");
}

}  // namespace

bool grad_enabled() noexcept { return records_now(); }

bool set_grad_enabled(bool enabled) noexcept {
  const bool before = records_now();
  set_recording(enabled);
  return before;
}

bool requires_grad(const Tensor& tensor) {
  TensorImpl* t = with_history(tensor);
  return wants_grad(t) || (t->keys_seen() & kTapeKey);
}

void set_requires_grad(const Tensor& tensor, bool wanted) {
  TensorImpl* t = with_history(tensor);
  BP_CHECK(!t->wrapper, VALUE, "requires_grad: the tensor belongs to a ", t->wrapper->transform,
           "; set it outside, or differentiate with grad or jvp");
  BP_CHECK(!t->node, VALUE, "requires_grad: may be set only on a leaf; this tensor was made by ", node_name(tensor),
           ": use detach()");
  BP_CHECK(!wanted || (BP_DTYPE_BIT(t->dtype) & (BP_MASK_FLOATING | BP_MASK_COMPLEX)), DTYPE,
           "requires_grad: only floating and complex tensors have gradients, found ", kDtypeNames[t->dtype]);
  Autograd& autograd = autograd_of(t);
  if (std::exchange(autograd.requires_grad, wanted) == wanted) return;
  t->set_keys(wanted ? t->keys_seen() | kTapeKey : t->keys_seen() & ~kTapeKey);
  if (wanted) return renew_views(t);
  if (!t->view) return;
  // No leaf of its own any more: it asks its base again.
  std::atomic_ref(t->view->base_stamp).store(~uint64_t{0}, std::memory_order_release);
  std::atomic_ref(t->view->fresh_at).store(0, std::memory_order_release);
}

bool is_leaf(const Tensor& tensor) { return !has_history(with_history(tensor)); }

Tensor grad_of(const Tensor& tensor) {
  TensorImpl* t = impl(tensor);
  const Autograd* autograd = find_autograd(t);
  if (!autograd) return {};
  std::lock_guard guard(gradient_lock(t));
  return Tensor::share(autograd->grad);
}

void check_grad_of(const Tensor& tensor, const Tensor& grad) {
  BP_CHECK(same_shape(*tensor.held(), *grad.get()), SHAPE, "grad: its shape differs from the tensor's");
  BP_CHECK(tensor.dtype() == grad.dtype(), DTYPE, "grad: its dtype differs from the tensor's");
}

void set_grad_of(const Tensor& tensor, const Tensor& grad) {
  if (grad) check_grad_of(tensor, grad);
  Autograd& autograd = autograd_of(impl(tensor));
  Tensor other = leads_to(grad, tensor) ? detach(grad) : grad;
  TensorImpl* given = impl(other.detach_handle());
  {
    std::lock_guard guard(gradient_lock(impl(tensor)));
    std::swap(autograd.grad, given);
  }
  if (given) core::release(given);
}

Tensor detach(const Tensor& tensor) {
  TensorImpl* t = impl(tensor);
  BP_CHECK(t->storage, VALUE, "detach: the tensor belongs to a transform; use stop_gradient there");
  return Tensor::adopt(new_alias(*t));
}

uint64_t version_of(const Tensor& tensor) {
  const bp_storage* storage = tensor.held()->storage;
  return storage ? storage->version.load(std::memory_order_relaxed) : 0;
}

bool have_one_base(const Tensor& a, const Tensor& b) {
  const auto base = [](const TensorImpl* t) {
    while (t->view) t = t->view->base;
    return t;
  };
  return base(impl(a)) == base(impl(b));
}

const char* node_name(const Tensor& tensor) {
  const Node* node = with_history(tensor)->node;
  return !node ? "" : node->op ? node->op->record->def.name : "a copy between devices";
}

namespace {

// The histories that a pass starts from, and the cotangents that it starts with. Owns the edges.
struct Roots {
  std::vector<Edge> edges;
  std::vector<Tensor> seeds;
  std::vector<TensorImpl*> cotangents;
  ~Roots() {
    for (const Edge& edge : edges) release(edge.node);
  }
  void add(const Tensor& root, const Tensor& cotangent) {
    BP_CHECK(!impl(root)->wrapper, VALUE,
             "backward: the root is a tensor of a transform that has ended; return it from the "
             "transformed function instead of keeping it");
    Edge edge = edge_to(impl(root));
    BP_CHECK(edge.node, VALUE,
             "backward: the root does not require a gradient and has no history; set requires_grad on an input");
    edges.push_back(edge);
    seeds.push_back(seed_of(root, cotangent));
    cotangents.push_back(impl(seeds.back()));
  }
};

void add_roots(const char* who, Roots& all, std::span<const Tensor> roots, std::span<const Tensor> cotangents) {
  BP_CHECK(cotangents.empty() || cotangents.size() == roots.size(), VALUE, who, ": found ", cotangents.size(),
           " cotangents for ", roots.size(), " roots; expected one per root, or none where each has one element");
  for (size_t i = 0; i < roots.size(); ++i) all.add(roots[i], cotangents.empty() ? Tensor() : cotangents[i]);
}

struct InputEdges {
  std::vector<Edge> edges;
  ~InputEdges() {
    for (const Edge& edge : edges) release(edge.node);
  }
};

}  // namespace

void backward(std::span<const Tensor> roots, std::span<const Tensor> cotangents, BackwardOptions options) {
  check_outside_levels("backward");
  CallGuard guard;
  Roots from;
  add_roots("backward", from, roots, cotangents);
  run_backward(
      {from.edges, from.cotangents, {}, nullptr, options.retain_graph || options.create_graph, options.create_graph});
}

std::vector<Tensor> gradients(std::span<const Tensor> roots, std::span<const Tensor> cotangents,
                              std::span<const Tensor> inputs, BackwardOptions options) {
  check_outside_levels("gradients");
  CallGuard guard;
  Roots from;
  add_roots("gradients", from, roots, cotangents);
  InputEdges to;
  for (const Tensor& input : inputs) {
    Edge edge = edge_to(impl(input));
    BP_CHECK(edge.node, VALUE, "gradients: input ", to.edges.size(), " does not require a gradient");
    to.edges.push_back(edge);
  }
  std::vector<Tensor> captured(inputs.size());
  run_backward({from.edges, from.cotangents, to.edges, &captured, options.retain_graph || options.create_graph,
                options.create_graph, false, true});
  return captured;
}

uint64_t add_hook(const Tensor& tensor, Hook hook) {
  TensorImpl* t = impl(tensor);
  BP_CHECK(requires_grad(tensor) || !t->wrapper, VALUE, "hook: the tensor belongs to a ", t->wrapper->transform,
           ", which the tape does not record. Fix: set the hook on an argument or a result, outside of the function, "
           "or give the "
           "function its own gradient with custom_function");
  BP_CHECK(requires_grad(tensor), VALUE, "hook: the tensor does not require a gradient");
  BP_CHECK(hook, VALUE, "hook: the function is empty; expected one that takes a cotangent");
  uint64_t id = next_hook.fetch_add(1, std::memory_order_relaxed) & ((uint64_t{1} << 48) - 1);
  if (!t->node) {
    autograd_of(t).hooks.add(id, std::move(hook));
    return id;
  }
  id |= uint64_t{t->node_output} << 48;
  t->node->hooks.add(id, std::move(hook));
  return id;
}

bool remove_hook(const Tensor& tensor, uint64_t id) {
  TensorImpl* t = impl(tensor);
  if (t->node) return t->node->hooks.remove(id);
  Autograd* autograd = find_autograd(t);
  return autograd && autograd->hooks.remove(id);
}

namespace {
void visit_hooks(const Hooks& hooks, OwnedVisitor& visitor) {
  if (const auto rows = hooks.snapshot())
    for (const auto& [id, hook] : *rows) visitor.hook(hook);
}
}  // namespace

void visit_owned(const bp_tensor* tensor, OwnedVisitor& visitor) {
  const auto* t = static_cast<const TensorImpl*>(tensor);
  while (t && t->refs.load(std::memory_order_acquire) == 1) {
    if (const Node* node = t->node; node && node->refs.load(std::memory_order_acquire) == 1) {
      visit_hooks(node->hooks, visitor);
      if (node->kind == Node::Kind::kGraph) node->graph->visit(visitor);
    }
    const Autograd* autograd = t->autograd;
    if (autograd) visit_hooks(autograd->hooks, visitor);
    std::lock_guard guard(gradient_lock(t));
    t = autograd ? autograd->grad : nullptr;
  }
}

size_t bytes_per_node() noexcept { return sizeof(Node) + 2 * sizeof(Edge) + 3 * (sizeof(bp_value) + sizeof(Saved)); }

}  // namespace backplane
