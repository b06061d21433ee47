// Do tensors show the same bytes, be it through one storage or through two over the memory of another library?
#pragma once

#include <cstdint>

#include "memory/tensors/overlap.hpp"
#include "memory/tensors/tensor_impl.hpp"

namespace backplane::core {

inline bool is_external(const bp_storage* storage) { return storage && storage->owner == bp_storage::Owner::kExternal; }

// Of several storages, over another library's memory.
inline bool share_bytes(const bp_storage* a, const bp_storage* b) {
  if (a->device != b->device || !(is_external(a) || is_external(b))) return false;
  const auto begin = [](const bp_storage* s) { return reinterpret_cast<uintptr_t>(s->data); };
  return begin(a) < begin(b) + b->size && begin(b) < begin(a) + a->size;
}

// May they? Tensors without a storage do not.
inline bool may_share_bytes(const TensorImpl& a, const TensorImpl& b) {
  if (!a.storage || !b.storage) return false;
  return a.storage == b.storage ? overlap(a, b) != Overlap::kNo : share_bytes(a.storage, b.storage);
}

}  // namespace backplane::core
