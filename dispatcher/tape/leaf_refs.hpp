// References to leaf nodes, held back per thread. Most edges of a graph that lead to a leaf are made and dropped by one
// thread, again and again; a reference that an edge gives back waits here for the next edge to that leaf, so that
// neither pays a locked instruction.
//
// Leaf nodes alone come here: they own nothing, so one may outlive its tensor for a while. A thread holds references to
// at most kSlots of them, and gives them back when it ends. Sanitizer builds hold none (pool.hpp).
#pragma once

#include "memory/process/pool.hpp"
#include "tape/node.hpp"

namespace backplane::core {

class LeafRefs {
 public:
  // A reference for the caller.
  static void retain(Node* leaf) noexcept {
    if constexpr (kPooling) {
      Slot& slot = slot_of(leaf);
      if (slot.leaf == leaf && slot.count > 0) [[likely]] {
        --slot.count;
        return;
      }
    }
    core::retain(leaf);
  }

  // Takes the caller's.
  static void release(Node* leaf) noexcept {
    if constexpr (kPooling) {
      Slot& slot = slot_of(leaf);
      if (slot.leaf == leaf && slot.count < kMost) [[likely]] {
        ++slot.count;
        return;
      }
      if (hold_instead(slot, leaf)) return;
    }
    core::release(leaf);
  }

 private:
  static constexpr uintptr_t kSlots = 16;
  static constexpr uint32_t kMost = 1 << 16;
  // A count of 0 says that `leaf` is an address to compare with, and perhaps no node any more.
  struct Slot {
    Node* leaf;
    uint32_t count;
  };
  struct List {
    Slot slots[kSlots];
    bool armed;   // the thread's Closer exists
    bool closed;  // the thread is ending: nothing is held any more
  };
  struct Closer {
    ~Closer() {
      list_.closed = true;
      for (Slot& slot : list_.slots) give_back(slot);
    }
  };
  static inline thread_local constinit List list_ __attribute__((tls_model("initial-exec"))) = {};

  // Nodes lie in blocks of 256 bytes or more.
  static Slot& slot_of(const Node* leaf) { return list_.slots[reinterpret_cast<uintptr_t>(leaf) / 256 % kSlots]; }

  static void give_back(Slot& slot) noexcept {
    if (slot.count > 1) slot.leaf->refs.fetch_sub(slot.count - 1, std::memory_order_acq_rel);
    if (slot.count > 0) core::release(slot.leaf);
    slot = {nullptr, 0};
  }

  [[gnu::noinline]] static bool hold_instead(Slot& slot, Node* leaf) noexcept {
    if (list_.closed || slot.leaf == leaf) return false;
    if (!list_.armed) {
      static thread_local Closer closer;
      (void)&closer;
      list_.armed = true;
    }
    give_back(slot);
    slot = {leaf, 1};
    return true;
  }
};

}  // namespace backplane::core
