// The backward pass: runs nodes in descending depth, iteratively. A node waits in a heap with the cotangents that have
// arrived; consumers are always deeper, so when it is taken out they are complete. Nothing is counted beforehand.
#include "tape/engine.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "backplane/device.hpp"
#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/interrupt.hpp"
#include "memory/process/pool.hpp"
#include "record/dtype_rules.hpp"
#include "record/owned_value.hpp"
#include "record/shape_words.hpp"
#include "tape/sums.hpp"
#include "tape/vjp.hpp"

namespace backplane::core {

namespace {

// The number that a pass begins with, where the host may write it and nobody takes calls. Empty: elsewhere.
Tensor written_number(double number, bp_dtype dtype, bp_device id) {
  if (dtype != BP_FLOAT32 && dtype != BP_FLOAT64) return {};
  if (thread_state.level || thread_state.captures || thread_state.included_keys) return {};
  Device& device = device_at(id);
  if (!device.host_memory()) return {};
  check_usable(device);
  Tensor made = Tensor::adopt(new_tensor(device, dtype, 0, nullptr));
  void* const place = impl(made)->storage->data;
  if (dtype == BP_FLOAT64)
    *static_cast<double*>(place) = number;
  else
    *static_cast<float*>(place) = static_cast<float>(number);
  return made;
}

}  // namespace

Tensor filled(Shape shape, double fill, bp_dtype dtype, bp_device device) {
  if (shape.empty())
    if (Tensor made = written_number(fill, dtype, device)) return made;
  return roles::full(shape, value(fill), dtype, device);
}

namespace {

std::atomic<uint64_t> next_run{1};

// A node in the heap. The cotangents of up to two results are in place; more are rare.
struct Pending {
  Node* node;  // owned
  uint64_t order;
  bool claimed;  // through node->claim; else through the run's map
  Tensor first[2];
  std::vector<Tensor> more;
  Tensor& at(uint32_t output) {
    if (output < 2) return first[output];
    if (more.size() < output - 1) more.resize(output - 1);
    return more[output - 2];
  }
};
using PendingPool = Pool<sizeof(Pending)>;

bool earlier(const Pending* a, const Pending* b) {
  return a->node->depth != b->node->depth ? a->node->depth < b->node->depth : a->order > b->order;
}

Tensor added(const Tensor& a, const Tensor& b) { return roles::add(impl(a), impl(b)); }

// a += b, of a buffer that only this pass knows.
void add_into(const Tensor& a, const Tensor& b) { roles::add_into(impl(a), impl(b)); }

void accumulate(Tensor& sum, Tensor addend, bool create_graph) {
  if (!sum) {
    sum = std::move(addend);
  } else if (may_add_into(sum, create_graph) && is_plain(*impl(addend), create_graph)) {
    add_into(sum, addend);
  } else if (may_add_into(addend, create_graph) && is_plain(*impl(sum), create_graph)) {
    add_into(addend, sum);
    sum = std::move(addend);
  } else {
    sum = added(sum, addend);
  }
}

struct GradientLocks {
  Lock of_slot[16];
  GradientLocks() {
    for (Lock& lock : of_slot) lock.enlist(LockRank::kGradient);
  }
};
GradientLocks gradient_locks;

constexpr uint8_t kConsumed = 0x80;

// A pass at a node. The first pass without retain_graph takes the saved values: a later pass is
// refused, and the values are freed once the last active pass has ended.
class NodeUse {
 public:
  NodeUse(Node* node, bool retain) : node_(node), retain_(retain) {
    uint8_t now = node->uses.load(std::memory_order_relaxed);
    do {
      BP_CHECK(!(now & kConsumed), VALUE, "backward: the history of ",
               node->op ? node->op->record->name : "a copy between devices",
               " was used by an earlier pass and its saved values are gone; let the earlier one retain the graph "
               "(retain_graph)");
      BP_CHECK(now + 1 < kConsumed, BUSY, "backward: ", int{now},
               " passes run through one node at once, the most that may");
    } while (!node->uses.compare_exchange_weak(now, static_cast<uint8_t>((now + 1) | (retain ? 0 : kConsumed)),
                                               std::memory_order_acq_rel, std::memory_order_relaxed));
  }
  ~NodeUse() {
    if (!done_ && !retain_) {
      node_->uses.fetch_sub(1 + kConsumed, std::memory_order_acq_rel);  // the values are still there
      return;
    }
    // Alone, and nobody comes any more: the locked instruction is saved.
    if (node_->uses.load(std::memory_order_acquire) == (kConsumed | 1))
      node_->uses.store(kConsumed, std::memory_order_relaxed);
    else if (node_->uses.fetch_sub(1, std::memory_order_acq_rel) != (kConsumed | 1))
      return;
    release_saved(node_);
  }
  NodeUse(const NodeUse&) = delete;
  void done() { done_ = true; }

 private:
  Node* node_;
  bool retain_;
  bool done_ = false;
};

std::string form_of(const bp_tensor& t) {
  return std::string(kDtypeNames[t.dtype]) + " of shape " + shape_text({t.dl.shape, static_cast<size_t>(t.dl.ndim)}) +
         " on " + name_of(device_of(static_cast<const TensorImpl&>(t)));
}

// The result of a hook replaces the cotangent, so it must have the same shape and dtype.
void run_hook(const Hook& hook, Tensor& cotangent) {
  Tensor replaced = hook(cotangent);
  if (!replaced) return;
  const bp_tensor &found = *replaced.get(), &expected = *cotangent.get();
  const bool same = found.dtype == expected.dtype && same_shape(found, expected) && found.backend == expected.backend &&
                    found.ordinal == expected.ordinal;
  BP_CHECK(same, VALUE, "backward: a hook returned a ", form_of(found), " for a gradient that is ", form_of(expected),
           "; a hook may change only elements. Fix: cast or reshape its result");
  cotangent = std::move(replaced);
}

void run_hooks_of(TensorImpl* leaf, Tensor& cotangent) {
  if (!leaf->autograd) return;
  if (const auto hooks = leaf->autograd->hooks.snapshot())
    for (const auto& [id, hook] : *hooks) run_hook(hook, cotangent);
}

void accumulate_leaf(TensorImpl* leaf, Tensor cotangent, bool create_graph) {
  Autograd& autograd = *leaf->autograd;
  Tensor before;  // outlives the guard
  std::lock_guard guard(gradient_lock(leaf));
  if (!autograd.grad) {
    if (!create_graph && !may_add_into(cotangent, false))
      before = std::exchange(cotangent, roles::copy(impl(cotangent)));
    autograd.grad = impl(cotangent.detach_handle());
  } else if (create_graph) {
    Tensor sum = added(Tensor::share(autograd.grad), cotangent);
    before = Tensor::adopt(autograd.grad);
    autograd.grad = impl(sum.detach_handle());
  } else {
    add_into(Tensor::share(autograd.grad), cotangent);
  }
}

// Backward formulas are recorded only for higher orders.
class RecordingScope {
 public:
  explicit RecordingScope(bool record) : saved_(set_grad_enabled(record && grad_enabled())) {}
  ~RecordingScope() { set_grad_enabled(saved_); }

 private:
  bool saved_;
};

class Engine {
 public:
  explicit Engine(const BackwardRun& run) : run_(run), id_(next_run.fetch_add(1, std::memory_order_relaxed)) {}
  ~Engine() {
    for (Pending* p : heap_) finish(p);
  }

  void run() {
    for (const Edge& input : run_.inputs) lowest_input_ = std::min(lowest_input_, input.node->depth);
    if (run_.only_paths) paths_.emplace(run_.inputs, run_.roots);
    for (size_t i = 0; i < run_.roots.size(); ++i)
      if (!paths_ || paths_->leads(run_.roots[i].node)) send(run_.roots[i], Tensor::share(run_.cotangents[i]));
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), earlier);
      Pending* p = heap_.back();
      heap_.pop_back();
      unclaim(p);
      struct Finish {
        Engine& engine;
        Pending* p;
        ~Finish() { engine.finish(p); }
      } finish_at_end{*this, p};
      if (run_.captured && p->node->depth < lowest_input_) continue;
      if (until_check_ < 0) {
        check_interrupt();
        until_check_ = kWorkPerCheck;
      }
      step(*p);
    }
  }

 private:
  Pending* find(Node* node) {
    uint64_t claim = node->claim.load(std::memory_order_acquire);
    if (claim == id_) return static_cast<Pending*>(node->pending);
    if (claim != 0) {
      auto found = elsewhere_.find(node);
      if (found != elsewhere_.end()) return found->second;
    }
    return nullptr;
  }

  void send(Edge edge, Tensor cotangent) {
    Pending* p = find(edge.node);
    if (!p) {
      retain(edge.node);
      p = new (PendingPool::take()) Pending{};
      p->node = edge.node;
      p->order = sent_++;
      uint64_t free = 0;
      p->claimed = edge.node->claim.compare_exchange_strong(free, id_, std::memory_order_acq_rel);
      if (p->claimed)
        edge.node->pending = p;
      else
        elsewhere_.emplace(edge.node, p);  // another pass, or an outer one, is at this node
      heap_.push_back(p);
      std::push_heap(heap_.begin(), heap_.end(), earlier);
    }
    accumulate(p->at(edge.output), std::move(cotangent), run_.create_graph);
  }

  void unclaim(Pending* p) {
    if (p->claimed) {
      p->node->pending = nullptr;
      p->node->claim.store(0, std::memory_order_release);
      p->claimed = false;
    } else {
      elsewhere_.erase(p->node);
    }
  }

  void finish(Pending* p) {
    if (p->claimed) unclaim(p);
    Node* node = p->node;
    p->~Pending();
    PendingPool::give(p);
    release(node);
  }

  // Where an outer pass goes on: the node's hooks and its formulas are for that one.
  bool stops_at(Pending& p) {
    bool input = false;
    for (size_t i = 0; i < run_.inputs.size(); ++i) {
      if (run_.inputs[i].node != p.node) continue;
      (*run_.captured)[i] = p.at(run_.inputs[i].output);
      input = true;
    }
    return input;
  }

  void step(Pending& p) {
    Node* node = p.node;
    until_check_ -= kWorkPerNode + (p.first[0] ? static_cast<int64_t>(p.first[0].get()->nbytes) : 0);
    if (run_.stop_at_inputs && stops_at(p)) return;
    if (const auto hooks = node->hooks.snapshot()) {
      for (const auto& [id, hook] : *hooks) {
        Tensor& g = p.at(static_cast<uint32_t>(id >> 48));
        if (g) run_hook(hook, g);
      }
    }
    const bool is_leaf = node->kind == Node::Kind::kLeaf;
    const Tensor leaf = is_leaf && p.first[0] ? leaf_of(node) : Tensor();
    if (leaf) run_hooks_of(impl(leaf), p.first[0]);
    for (size_t i = 0; i < run_.inputs.size(); ++i)
      if (run_.inputs[i].node == node) (*run_.captured)[i] = p.at(run_.inputs[i].output);
    if (is_leaf) {
      if (!run_.captured && leaf) accumulate_leaf(impl(leaf), std::move(p.first[0]), run_.create_graph);
      return;
    }
    bp_value few[kMaxResults];
    std::vector<bp_value> many(node->n_results() > kMaxResults ? node->n_results() : 0);  // of a function
    bp_value* cotangents = many.empty() ? few : many.data();
    for (uint32_t j = 0; j < node->n_results(); ++j) cotangents[j] = value(p.at(j));
    scratch_.assign(node->n_edges, Tensor());
    std::vector<Tensor> vjps;
    vjps.swap(scratch_);
    {
      NodeUse use(node, run_.retain_graph);
      const bool partial = node->kind == Node::Kind::kOp && (node->op->flags & kPartialGradient);
      node_vjp(node, cotangents, vjps, run_.create_graph, paths_ ? &*paths_ : nullptr,
               partial ? sums_of(node) : nullptr);
      use.done();
    }
    for (uint32_t e = 0; e < node->n_edges; ++e)
      if (Node* next = node->edges()[e].node; next && vjps[e] && (!paths_ || paths_->leads(next)))
        send(node->edges()[e], std::move(vjps[e]));
    vjps.swap(scratch_);
  }

  // Per edge: the sum that waits where it leads, if this pass may add into it.
  const Tensor* const* sums_of(Node* node) {
    sums_.assign(node->n_edges, nullptr);
    for (uint32_t e = 0; e < node->n_edges; ++e) {
      const Edge& edge = node->edges()[e];
      Pending* p = edge.node && edge.output < 2 ? find(edge.node) : nullptr;
      if (p && p->at(edge.output) && may_add_into(p->at(edge.output), run_.create_graph))
        sums_[e] = &p->at(edge.output);
    }
    return sums_.data();
  }

  // Bytes of cotangents, in which a node counts as much as it would take to compute them.
  static constexpr int64_t kWorkPerCheck = 1 << 20, kWorkPerNode = 4096;

  const BackwardRun& run_;
  uint64_t id_;
  int64_t until_check_ = kWorkPerCheck;
  uint64_t sent_ = 0;
  std::vector<Pending*> heap_;
  std::unordered_map<Node*, Pending*> elsewhere_;
  std::vector<Tensor> scratch_;
  std::vector<const Tensor*> sums_;
  uint32_t lowest_input_ = UINT32_MAX;
  std::optional<PathsTo> paths_;
};

}  // namespace

Lock& gradient_lock(const TensorImpl* tensor) {
  return gradient_locks.of_slot[reinterpret_cast<uintptr_t>(tensor) / sizeof(TensorImpl) % 16];
}

Tensor seed_of(const Tensor& root, const Tensor& cotangent) {
  BP_CHECK(cotangent || element_count(*root.get()) == 1, VALUE, "backward: the root has ", element_count(*root.get()),
           " elements; give a cotangent of its shape, or reduce it to one element");
  BP_CHECK(
      cotangent || !(BP_DTYPE_BIT(root.dtype()) & BP_MASK_COMPLEX), VALUE,
      "backward: the root is complex, so its gradient is not unique. Fix: take its real part, or give a cotangent");
  if (!cotangent) return filled(root.shape(), 1.0, root.dtype(), root.device());
  BP_CHECK(same_shape(*cotangent.get(), *root.get()), SHAPE, "backward: the cotangent's shape differs from its root's");
  BP_CHECK(cotangent.dtype() == root.dtype(), DTYPE, "backward: the cotangent is ", kDtypeNames[cotangent.dtype()],
           ", its root ", kDtypeNames[root.dtype()]);
  return cotangent;
}

void run_leaf_hooks(TensorImpl* leaf, Tensor& gradient) {
  RecordingScope recording(false);
  run_hooks_of(leaf, gradient);
}

void run_backward(const BackwardRun& run) {
  check_stack("backward");  // a hook may run another pass
  RecordingScope recording(run.create_graph);
  Engine engine(run);
  engine.run();
}

}  // namespace backplane::core
