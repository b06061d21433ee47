// Records of views: one pass over the arguments where they fit into a block of the free list, two where they do not.
#include "call/view_record.hpp"

#include <cstring>
#include <new>

#include "memory/tensors/overlap.hpp"
#include "record/plain_value.hpp"

namespace backplane::core {

namespace {

// Has what lists and the rarest values lack: nothing to point to.
bool is_flat(uint16_t tag) {
  constexpr uint32_t kFlat = ((1u << (BP_TAG_FLOAT + 1)) - 1) | (1u << BP_TAG_TENSOR);
  static_assert(BP_TAG_FLOAT < BP_TAG_TENSOR && BP_TAG_TENSOR < 32);
  return tag < 32 && (kFlat >> tag & 1);
}

// In two words, as arguments are written: a load of both at once would wait for these stores. The empty statement keeps
// the compiler from making one load of them.
[[gnu::always_inline]] inline void copy_value(bp_value& to, const bp_value& from) {
  uint64_t head;
  std::memcpy(&head, &from, sizeof head);
  asm("" : "+r"(head));
  std::memcpy(static_cast<void*>(&to), &head, sizeof head);
  to.u = from.u;
}

// Returns the place behind the copied elements, so that the caller's variable stays in a register; nullptr: no room.
[[gnu::noinline]] char* copy_rare(bp_value& to, const bp_value& v, char* place, const char* end) {
  if (extra_bytes(v) > static_cast<size_t>(end - place)) return nullptr;
  to = copy_plain(v, place);
  return place;
}

// False: they do not fit.
[[gnu::always_inline]] inline bool copy_arguments(ViewRecord& record, const bp_value* args, char* end) {
  bp_value* to = record.args();
  bp_value* const to_end = to + record.n_args;
  auto* place = reinterpret_cast<char*>(to_end);
  for (; to != to_end; ++to, ++args) {
    const bp_value& v = *args;
    copy_value(*to, v);
    if (is_flat(v.tag)) continue;
    const uint32_t words_each = v.tag == BP_TAG_INT_LIST ? 1 : v.tag == BP_TAG_VALUE_LIST ? 2 : 0;
    if (words_each == 0) {
      place = copy_rare(*to, v, place, end);
      if (!place) return false;
      continue;
    }
    // A word at a time: the lists of a view's arguments have an element or two.
    const auto* from = static_cast<const char*>(v.u.p);
    const size_t bytes = sizeof(uint64_t) * words_each * v.count;
    if (bytes > static_cast<size_t>(end - place)) return false;
    to->u.p = place;
    for (const char* stop = place + bytes; place != stop; place += sizeof(uint64_t), from += sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, from, sizeof word);
      std::memcpy(place, &word, sizeof word);
    }
  }
  return true;
}

constexpr int32_t kMostSmallArguments = (kSmallViewRecord - sizeof(ViewRecord)) / sizeof(bp_value);

// In place of a small one.
[[gnu::noinline]] ViewRecord* large_record(ViewRecord* small, const bp_value* args) {
  const ViewRecord head = *small;
  ViewRecordPool::give(small);
  size_t size = sizeof(ViewRecord) + head.n_args * sizeof(bp_value);
  for (uint32_t i = 0; i < head.n_args; ++i) size += extra_bytes(args[i]);
  size = size <= kSmallViewRecord ? kSmallViewRecord + 16 : (size + 15) / 16 * 16;
  auto* record = static_cast<ViewRecord*>(::operator new (size, std::align_val_t{16}));
  *record = head;
  record->block_size = static_cast<uint32_t>(size);
  copy_arguments(*record, args, reinterpret_cast<char*>(record) + size);
  return record;
}

}  // namespace

void remember_view(const OpEntry& op, const bp_value* args, int32_t n_args, TensorImpl* base, TensorImpl* view,
                   bool unrecorded) {
  auto* record = static_cast<ViewRecord*>(ViewRecordPool::take());
  // The base was current when it was last compared with its own bases.
  uint64_t fresh_at;
  if (base->view) [[unlikely]] {
    fresh_at = std::atomic_ref(base->view->fresh_at).load(std::memory_order_acquire);
    unrecorded = unrecorded || base->view->unrecorded;
  } else {
    fresh_at = inplace_changes.load(std::memory_order_acquire);
  }
  *record = {base, &op, stamp_of(*base), kSmallViewRecord, static_cast<uint16_t>(n_args), unrecorded, fresh_at};
  if (n_args > kMostSmallArguments ||
      !copy_arguments(*record, args, reinterpret_cast<char*>(record) + kSmallViewRecord)) [[unlikely]]
    record = large_record(record, args);
  retain(base);
  view->view = record;
}

// A tensor with a history or that requires a gradient is not skipped: a write through the view must see it. A view that
// is older than its base is not skipped either: it must be taken again first.
ViewRecord* same_view(const TensorImpl& view, const TensorImpl& base) noexcept {
  constexpr int kNear = 8;
  const TensorImpl* t = &base;
  for (int i = 0; i < kNear; ++i, t = t->view->base) {
    if (!t->view || t->node || t->autograd || !t->storage) return nullptr;
    if (t->view->base_stamp != stamp_of(*t->view->base)) return nullptr;
    if (same_layout(view, *t)) return t->view;
  }
  return nullptr;
}

}  // namespace backplane::core
