// What a tensor carries for the layers above, beside its data: how a view was made, what a level put behind it, what
// the tape keeps of it. The layers fill these and read them; a tensor's end takes them down.
//
// A view owns its record, and the record a reference to the base. Any thread; changes one at a time per tensor. Those
// who only read a view may come to give it its base's history at once (refresh).
#pragma once

#include <new>

#include "memory/process/pool.hpp"
#include "memory/tensors/hooks.hpp"
#include "memory/tensors/tensor_impl.hpp"

namespace backplane::core {

struct OpEntry;  // registry/registry.hpp

// How a view was made, so that a change through it reaches its base (view_record.hpp). One block: the arguments follow,
// args()[op.alias] being the base, and behind them what lists among them point to.
struct ViewRecord {
  TensorImpl* base;  // owned; its storage is the view's, which counts no reference of its own
  const OpEntry* op;
  uint64_t base_stamp;  // stamp_of(*base) when this view was taken
  uint32_t block_size;
  uint16_t n_args;
  bool unrecorded;    // without its base's history: made under no_grad, or by an op whose result is a constant
  uint64_t fresh_at;  // what inplace_changes was when the view was last found as new as its bases
  bp_value* args() { return reinterpret_cast<bp_value*>(this + 1); }
};

// Of a view that remembers its base, which may come to a history later, and the view with it. No op answers to it:
// readers of keys call keys_now.
inline constexpr uint64_t kViewKey = uint64_t{1} << 58;

// Grows with every change through which views of a tensor may have to be taken anew. So a chain of views that was found
// fresh is not walked again before the next one.
extern std::atomic<uint64_t> inplace_changes;

inline constexpr size_t kSmallViewRecord = 256;
using ViewRecordPool = Pool<kSmallViewRecord>;

// Ends a record. The reference to the base is then the caller's.
inline TensorImpl* end_view_record(ViewRecord* record) noexcept {
  TensorImpl* base = record->base;
  if (record->block_size == kSmallViewRecord) [[likely]]
    ViewRecordPool::give(record);
  else
    ::operator delete (record, std::align_val_t{16});
  return base;
}

// The record behind a tensor of a level. The handle's shape and dtype never change; `inner`, `tangent` and `batched`
// do when the tensor is changed in place.
struct Wrapper {
  uint64_t serial;
  uint32_t depth;
  uint32_t version = 0;           // counts in-place changes
  TensorImpl* inner;              // owned: the tensor below
  TensorImpl* tangent = nullptr;  // owned; of a forward level: nullptr is a zero
  bool batched = false;           // of a batching level: `inner` has the batch at axis 0
  bool shared = false;            // of a batching level: an argument without the batch, which the caller holds too
  uint32_t recorded = 0;          // what `version` became by the last change that was recorded
  const char* transform;
  uint64_t number = 0;  // of its thread's wrappers, in the order in which they were made
};
using WrapperPool = Pool<sizeof(Wrapper)>;

// What a tensor keeps for differentiation beyond its node: most have none.
struct Autograd {
  bool requires_grad = false;             // a leaf that wants a gradient
  TensorImpl* grad = nullptr;             // owned; under gradient_lock
  std::atomic<Node*> leaf_node{nullptr};  // owned; made when first needed
  Hooks hooks;                            // of a leaf
  uint64_t stamp = 0;                     // grows whenever views of the tensor come to another history
};

// How often the tensor was changed in place. A view of a level's tensor knows of its base's changes once it was
// refreshed.
inline uint32_t version_now(const TensorImpl& t) {
  return t.storage ? t.storage->version.load(std::memory_order_relaxed) : t.wrapper ? t.wrapper->version : 0;
}

// Grows whenever views of the tensor must be taken anew.
inline uint64_t stamp_of(const TensorImpl& base) {
  return base.wrapper ? base.wrapper->version : base.autograd ? base.autograd->stamp : 0;
}

// Whose nodes they are, and so who ends them: the tape, by a static initialiser. A tensor has a node or an Autograd
// only once it has.
struct HistoryOwner {
  void (*retain)(Node* node) noexcept;
  void (*release)(Node* node) noexcept;
  void (*end)(Autograd* autograd) noexcept;
  Node* (*edge)(TensorImpl* tensor, uint32_t& output);  // what its gradient goes to, owned by the caller, or nullptr
  void (*refresh)(TensorImpl* view);  // gives a view the history of its base, if that has come to one since
  void (*join)(TensorImpl* view);     // gives an unrecorded view the history that its base has now, or throws
  // The last reference to a tensor with an Autograd was given back, as drop() says. Has a backward pass taken one
  // since? Then the tensor ends with that one.
  bool (*taken_again)(TensorImpl* tensor) noexcept;
};
extern constinit HistoryOwner history_owner;

// May the base of this tensor have come to a history since it was taken as a view? Threads that only read it may ask at
// once.
inline bool is_stale(const TensorImpl& t) {
  return (t.keys_seen() & kViewKey) && std::atomic_ref(t.view->fresh_at).load(std::memory_order_acquire) !=
                                           inplace_changes.load(std::memory_order_acquire);
}

// A view that was made under no_grad, or has no derivative, is a constant to its readers. A recorded write through it
// changes its base, so the writer calls history_owner.join first.
inline bool is_unrecorded_view(const TensorImpl& t) { return (t.keys_seen() & kViewKey) && t.view->unrecorded; }

// The keys of a tensor, those included that a view has by its base's history.
inline uint64_t keys_now(TensorImpl* t) {
  if (is_stale(*t)) [[unlikely]]
    history_owner.refresh(t);
  return t->keys_seen() & ~kViewKey;
}

}  // namespace backplane::core
