// Nodes: their memory, their end without recursion, and the edges that lead to a tensor's history.
#include "tape/node.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "call/dispatch.hpp"
#include "call/view_record.hpp"
#include "levels/level.hpp"
#include "memory/process/pool.hpp"
#include "tape/leaf_refs.hpp"
#include "tape/record.hpp"

namespace backplane::core {
namespace {

constexpr size_t kSmallBlock = 256, kLargeBlock = 512;

// Blocks of two common sizes come from free lists; `size` grows to the size of the block.
void* take_block(size_t& size) {
  size = size <= kSmallBlock ? kSmallBlock : size <= kLargeBlock ? kLargeBlock : (size + 15) / 16 * 16;
  return size == kSmallBlock   ? Pool<kSmallBlock>::take()
         : size == kLargeBlock ? Pool<kLargeBlock>::take()
                               : ::operator new (size, std::align_val_t{16});
}

void give_block(void* block, size_t size) {
  if (size == kSmallBlock)
    Pool<kSmallBlock>::give(block);
  else if (size == kLargeBlock)
    Pool<kLargeBlock>::give(block);
  else
    ::operator delete (block, std::align_val_t{16});
}

// Guards a leaf node's `leaf` against the tensor's end on another thread.
StaticLock leaf_lock{LockRank::kTape};

// Guards a view's history while it is made anew, which its readers do.
StaticLock view_lock{LockRank::kView};

thread_local constinit Node* doomed __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local constinit bool destroying __attribute__((tls_model("initial-exec"))) = false;

void destroy_one(Node* node) noexcept {
  release_saved(node);
  for (uint32_t i = 0; i < node->n_edges; ++i) release_edge(node->edges()[i]);
  if (node->metas) delete[] node->metas;
  if (node->kind == Node::Kind::kGraph) delete node->graph;
  if (node->op) unlease(node->op->owner, LeaseKind::kNode);
  uint32_t size = node->block_size;
  node->~Node();
  give_block(node, size);
}

}  // namespace

Node* new_node(Node::Kind kind, uint32_t n_edges, uint32_t n_values, size_t extra) {
  size_t size =
      sizeof(Node) + n_edges * sizeof(Edge) + n_values * (sizeof(bp_value) + sizeof(Saved)) + (extra ? extra + 8 : 0);
  void* memory = take_block(size);
  Node* node = new (memory) Node;
  node->kind = kind;
  node->n_edges = n_edges;
  node->n_values = static_cast<uint16_t>(n_values);
  node->block_size = static_cast<uint32_t>(size);
  return node;
}

void release_saved(Node* node) noexcept {
  if (node->kind == Node::Kind::kGraph) node->graph->release();
  for (uint32_t i = 0; node->n_owned > 0; ++i) {
    bp_value& v = node->values()[i];
    switch (node->saved()[i]) {
      case Saved::kTensor:
      case Saved::kResult:
      case Saved::kMeta:
        release(impl(v.u.t));
        break;
      case Saved::kList:
        for (uint32_t k = 0; k < v.count; ++k)
          if (v.u.tensors[k]) release(impl(v.u.tensors[k]));
        delete[] const_cast<bp_tensor**>(v.u.tensors);
        break;
      case Saved::kPlain:
      case Saved::kLikeOutput:
        continue;
    }
    --node->n_owned;
    node->saved()[i] = Saved::kPlain;
    v = bp_value{};
  }
}

void destroy(Node* node) noexcept {
  node->pending = doomed;  // the list's link: no backward pass holds the node
  doomed = node;
  if (destroying) return;
  destroying = true;
  while (doomed) {
    Node* next = doomed;
    doomed = static_cast<Node*>(next->pending);
    destroy_one(next);
  }
  destroying = false;
}

Autograd& autograd_of(TensorImpl* tensor) {
  if (Autograd* autograd = find_autograd(tensor)) return *autograd;
  std::lock_guard guard(leaf_lock);
  if (!tensor->autograd) {
    auto* made = new (Pool<sizeof(Autograd)>::take()) Autograd;
    std::atomic_ref(tensor->autograd).store(made, std::memory_order_release);
  }
  return *tensor->autograd;
}

namespace {

bool taken_again(TensorImpl* tensor) noexcept {
  Node* leaf_node = tensor->autograd->leaf_node.load(std::memory_order_acquire);
  if (!leaf_node) return false;
  std::lock_guard guard(leaf_lock);
  // Where drop() saved the decrement, its reference is still counted.
  if (tensor->refs.load(std::memory_order_acquire) > 1 && tensor->refs.fetch_sub(1, std::memory_order_acq_rel) > 1)
    return true;
  leaf_node->leaf = nullptr;
  return false;
}

void end(Autograd* autograd) noexcept {
  if (Node* leaf_node = autograd->leaf_node.load(std::memory_order_acquire)) release(leaf_node);
  if (autograd->grad) release(autograd->grad);
  autograd->~Autograd();
  Pool<sizeof(Autograd)>::give(autograd);
}

[[gnu::constructor]] void own_histories() {
  history_owner = {[](Node* node) noexcept { retain(node); },
                   [](Node* node) noexcept { release(node); },
                   end,
                   [](TensorImpl* tensor, uint32_t& output) {
                     const Edge edge = edge_to(tensor);
                     output = edge.output;
                     return edge.node;
                   },
                   refresh_view,
                   join_base,
                   taken_again};
}

[[gnu::noinline]] Node* make_leaf_node(TensorImpl* tensor) {
  std::atomic<Node*>& slot = tensor->autograd->leaf_node;
  std::lock_guard guard(leaf_lock);
  Node* node = slot.load(std::memory_order_relaxed);
  if (node) return node;
  node = new_node(Node::Kind::kLeaf, 0, 0, 0);
  node->leaf = tensor;
  node->n_outs = 1;
  slot.store(node, std::memory_order_release);
  return node;
}

}  // namespace

namespace {
bool leads_to(Node* node, const Edge& edge) {
  return std::any_of(node->edges(), node->edges() + node->n_edges,
                     [&](const Edge& e) { return e.node == edge.node && e.output == edge.output; });
}

// Where the base is a leaf, a view that is a leaf of its own stays one, and one that leads there stays as it is, with
// its hooks.
bool keeps_history(TensorImpl* view, TensorImpl* base) {
  if (has_history(base)) return false;
  if (!view->node) return view->autograd && view->autograd->requires_grad;
  const Edge leaf = edge_to(base);
  const bool kept = leaf.node && leads_to(view->node, leaf);
  release_edge(leaf);
  return kept;
}
}  // namespace

// The base of a view was given a new history since the view was made: the view's history is the view op applied to
// that.
void refresh_view(TensorImpl* view) {
  refresh_chain(view, [](TensorImpl* tensor) {
    ViewRecord& record = *tensor->view;
    const uint64_t stamp = stamp_of(*record.base);
    std::atomic_ref seen(record.base_stamp);
    if (stamp == seen.load(std::memory_order_acquire)) return;
    Node* before = nullptr;
    {
      std::lock_guard guard(view_lock);  // threads that only read the view may come here at once
      if (stamp == record.base_stamp) return;
      if (keeps_history(tensor, record.base)) return seen.store(stamp, std::memory_order_release);
      if ((before = tensor->node)) retain(before);
      ++autograd_of(tensor).stamp;
      bp_value out = tensor_value(tensor);
      record_node({*record.op, record.args(), &out, record.args(), &tensor, nullptr, 0});
      seen.store(stamp, std::memory_order_release);
    }
    if (before) release(before);
  });
}

void check_writable_view(const TensorImpl& view) {
  const OpEntry& op = *view.view->op;
  BP_CHECK(!is_constant_view(op), VALUE, op.record->name,
           ": writing through its result is refused while a gradient is recorded, as it has no derivative. Fix: write "
           "under no_grad, or into a copy");
}

void join_base(TensorImpl* view) {
  const auto is_leaf = [](const TensorImpl* t) { return !t->node && t->autograd && t->autograd->requires_grad; };
  for (TensorImpl* t = view; t->view && t->view->unrecorded; t = t->view->base) {
    if (is_leaf(t)) return;
    if (wants_grad(t->view->base)) check_writable_view(*t);
  }
  for (TensorImpl* t = view; t->view && t->view->unrecorded; t = t->view->base) {
    t->view->unrecorded = is_constant_view(*t->view->op);
    t->view->base_stamp = ~uint64_t{0};
    t->view->fresh_at = 0;
  }
  refresh_view(view);
}

Tensor leaf_of(Node* node) {
  std::lock_guard guard(leaf_lock);
  TensorImpl* leaf = node->leaf;
  if (!leaf) return {};
  uint32_t refs = leaf->refs.load(std::memory_order_relaxed);
  while (refs != 0)
    if (leaf->refs.compare_exchange_weak(refs, refs + 1, std::memory_order_relaxed)) return Tensor::adopt(leaf);
  return {};
}

Edge edge_to(TensorImpl* tensor) {
  if (tensor->view && !tensor->wrapper) [[unlikely]]
    refresh_view(tensor);
  if (Node* node = tensor->node) {
    retain(node);
    return {node, tensor->node_output};
  }
  const Autograd* autograd = tensor->autograd;
  if (!autograd || !autograd->requires_grad) return {nullptr, 0};
  Node* leaf = autograd->leaf_node.load(std::memory_order_acquire);
  if (!leaf) [[unlikely]]
    leaf = make_leaf_node(tensor);
  LeafRefs::retain(leaf);
  return {leaf, 0};
}

void release_edge(const Edge& edge) noexcept {
  if (!edge.node) return;
  if (edge.node->kind == Node::Kind::kLeaf)
    LeafRefs::release(edge.node);
  else
    release(edge.node);
}

void attach_history(TensorImpl* tensor, Node* node, uint32_t output, uint64_t key) {
  Node* old = tensor->node;
  tensor->node_output = output;
  std::atomic_ref(tensor->node).store(node, std::memory_order_release);
  // Readers of a view that has them may be under way.
  if (const uint64_t keys = tensor->keys_seen(); (keys & key) != key) tensor->set_keys(keys | key);
  if (old) release(old);
}

void set_history(TensorImpl* tensor, Node* node, uint32_t output, uint64_t key) {
  retain(node);
  attach_history(tensor, node, output, key);
}

}  // namespace backplane::core
