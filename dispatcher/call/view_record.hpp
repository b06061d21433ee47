// How a view was made, so that a change through it reaches its base: making the record, and taking views anew.
#pragma once

#include <vector>

#include "memory/tensors/history.hpp"
#include "registry/registry.hpp"

namespace backplane::core {

// Which argument the result is a view of, or was detached from: that which the op says, else the first.
inline uint32_t base_argument(const OpEntry& op) {
  return op.record->def.alias == BP_NO_ARG ? 0 : op.record->def.alias;
}

// Is the result a constant of derivatives, so that none leads through a write into it?
inline bool is_constant_view(const OpEntry& op) { return op.record->results[0].flags & BP_RESULT_NONDIFF; }

// Remembers a call whose result is `view`, of its base_argument, `base`. `unrecorded`: made while recording is off.
void remember_view(const OpEntry& op, const bp_value* args, int32_t n_args, TensorImpl* base, TensorImpl* view,
                   bool unrecorded);

// The record of `base` or of a view that it is of, where `view`, taken of `base`, shows the same elements: a loop that
// takes views of views in turn holds no more of them than differ. nullptr: none is found near by.
ViewRecord* same_view(const TensorImpl& view, const TensorImpl& base) noexcept;

// Takes views that are older than their base again, from the base down: `refresh_one` handles a view and its base.
template <class RefreshOne>
void refresh_chain(TensorImpl* view, RefreshOne refresh_one) {
  const uint64_t now = inplace_changes.load(std::memory_order_acquire);
  // Threads that only read a view come here at once.
  const auto fresh = [](TensorImpl* t) { return std::atomic_ref(t->view->fresh_at); };
  if (fresh(view).load(std::memory_order_acquire) == now) return;
  std::vector<TensorImpl*> chain;
  for (TensorImpl* t = view; t->view && fresh(t).load(std::memory_order_acquire) != now; t = t->view->base)
    chain.push_back(t);
  for (size_t i = chain.size(); i-- > 0;) {
    refresh_one(chain[i]);
    fresh(chain[i]).store(now, std::memory_order_release);
  }
}

}  // namespace backplane::core
