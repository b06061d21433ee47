// The nodes of reverse-mode differentiation, and the history of tensors that they are.
//
// The eager tape is level 0; a grad level has a graph of the same nodes. A node holds edges to the nodes of its inputs
// and the values that its formulas read, as seen below its level. `depth` is one more than the largest among its
// inputs, so that descending depth is a valid order to run in, with no counting pass. Nodes are counted by reference
// and destroyed without recursion.
#pragma once

#include <memory>
#include <vector>

#include "backplane/autograd.hpp"
#include "memory/tensors/history.hpp"
#include "registry/registry.hpp"

namespace backplane::core {

// Has a tensor of this dtype a gradient?
inline bool is_inexact(bp_dtype dtype) { return BP_DTYPE_BIT(dtype) & (BP_MASK_FLOATING | BP_MASK_COMPLEX); }

struct Edge {
  Node* node;       // owned; nullptr: no derivative wanted
  uint32_t output;  // which result of `node`
};

// Per argument or result: what `values` holds of it.
enum class Saved : uint8_t {
  kPlain,       // no tensor, or nothing that a formula reads
  kTensor,      // a tensor and its version (value.count); owned
  kResult,      // a result of the node itself, without its history (which would be a cycle), and its version; owned
  kMeta,        // shape, dtype and device alone; owned
  kLikeOutput,  // shape, dtype and device of result 0: taken from its cotangent when needed
  kList         // an owned array of owned tensors, and behind them their versions
};

struct TensorMeta {  // of a result, to make zeros for an absent cotangent
  bp_device device;
  bp_dtype dtype;
  int32_t ndim;
  int64_t sizes[4];
  std::unique_ptr<int64_t[]> more;
  const int64_t* shape() const { return more ? more.get() : sizes; }
};

// What a node of kind kGraph keeps (graph_node.cpp).
class GraphStep {
 public:
  virtual ~GraphStep() = default;
  // As node_vjp.
  virtual void backward(Node* node, const bp_value* cotangents, std::vector<Tensor>& out, bool create_graph) = 0;
  virtual void release() noexcept = 0;  // what only a backward pass reads
  virtual void visit(OwnedVisitor& visitor) const = 0;
  // Is it run whatever the inputs of a backward pass are?
  virtual bool leads_everywhere() const noexcept { return false; }
  uint32_t n_results = 0;
};

struct Node {
  enum class Kind : uint8_t {
    kOp,    // a call: its record's VJP formulas
    kLeaf,  // accumulates into `leaf`
    kPut,   // an in-place change through a view, as seen by the base: edges are the base before, and the piece
    kMove,  // a copy from `source` to another device
    kGraph  // the run of a function: `graph`
  };
  std::atomic<uint32_t> refs{1};
  Kind kind = Kind::kOp;
  // The passes that run it now, and kConsumed once one does that releases its saved values.
  std::atomic<uint8_t> uses{0};
  uint16_t n_values = 0;  // arguments, then results
  uint32_t depth = 0;
  uint8_t n_args = 0;
  uint8_t n_outs = 0;
  uint16_t n_owned = 0;  // values that hold a tensor or a list
  uint32_t n_edges = 0;
  uint32_t block_size = 0;
  const OpEntry* op = nullptr;
  uint64_t needs = 0;  // arguments with an edge
  union {
    TensorImpl* leaf = nullptr;  // kLeaf; not owned: nullptr once the tensor is gone, with which its gradient would be
    bp_device source;            // kMove
    GraphStep* graph;            // kGraph; owned
  };
  TensorMeta* metas = nullptr;  // per result, where there are several; for kPut, of the piece
  Hooks hooks;                  // ids carry the result in their top 16 bits
  // While a backward pass waits to run this node: its number, and the cotangents so far.
  std::atomic<uint64_t> claim{0};
  void* pending = nullptr;
  uint32_t n_results() const { return kind == Kind::kGraph ? graph->n_results : n_outs; }
  // Behind the node, in one block: edges, values, Saved per value, and what list and string values point to.
  Edge* edges() { return reinterpret_cast<Edge*>(this + 1); }
  bp_value* values() { return reinterpret_cast<bp_value*>(edges() + n_edges); }
  Saved* saved() { return reinterpret_cast<Saved*>(values() + n_values); }
  char* extra() {
    auto end = reinterpret_cast<uintptr_t>(saved() + n_values);
    return reinterpret_cast<char*>((end + 7) & ~uintptr_t{7});
  }
};

// With edges and values as they lie in memory: the caller writes each, and its Saved.
Node* new_node(Node::Kind kind, uint32_t n_edges, uint32_t n_values, size_t extra);
void destroy(Node* node) noexcept;
inline void retain(Node* node) noexcept { node->refs.fetch_add(1, std::memory_order_relaxed); }
inline void release(Node* node) noexcept {
  if (node->refs.load(std::memory_order_acquire) == 1 || node->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
    destroy(node);
}
void release_saved(Node* node) noexcept;

Autograd& autograd_of(TensorImpl* tensor);  // makes it
// nullptr without an Autograd. Safe for a tensor to which other threads may add one.
inline Autograd* find_autograd(TensorImpl* tensor) {
  return std::atomic_ref(tensor->autograd).load(std::memory_order_acquire);
}
// The edge that leads to a tensor's history; an empty one where it has none. For a view whose base has changed since,
// the history is made anew first. The reference is the caller's.
Edge edge_to(TensorImpl* tensor);
void release_edge(const Edge& edge) noexcept;
// The tensor of a leaf's node, with a reference; empty once it is gone.
Tensor leaf_of(Node* node);
void refresh_view(TensorImpl* view);
// A recorded write is about to change an unrecorded view, and with it the base: so the view gets the base's history
// first. A leaf stays one. Throws for a view without derivative of a base that has a history.
void join_base(TensorImpl* view);
// Throws where a derivative would have to lead through a view that has none.
void check_writable_view(const TensorImpl& view);
// The tensor has another history than it had: views of it are to have that too.
inline void renew_views(TensorImpl* base) {
  if (base->refs.load(std::memory_order_relaxed) == 1) return;  // they would hold it
  ++autograd_of(base).stamp;
  inplace_changes.fetch_add(1, std::memory_order_release);
}
// A view's history may be made anew by another reader meanwhile: there is one before and after.
inline bool has_history(const TensorImpl* t) {
  return std::atomic_ref(const_cast<TensorImpl*>(t)->node).load(std::memory_order_relaxed) != nullptr;
}
inline bool wants_grad(TensorImpl* t) {
  if (is_stale(*t)) refresh_view(t);
  return has_history(t) || (t->autograd && t->autograd->requires_grad);
}
void set_history(TensorImpl* tensor, Node* node, uint32_t output, uint64_t key);
void attach_history(TensorImpl* tensor, Node* node, uint32_t output,
                    uint64_t key);  // takes over the caller's reference

}  // namespace backplane::core
