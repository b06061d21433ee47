// Per-thread free lists for the small objects of the call path: tensors, storages, autograd nodes.
//
// A block goes back to the list of the thread that frees it, up to a limit; the rest go to the system. Sanitizer
// builds keep no lists, so that a use after free is seen.
#pragma once

#include <cstddef>
#include <new>

namespace backplane::core {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kPooling = false;
#else
inline constexpr bool kPooling = true;
#endif

template <size_t Size, int Limit = 256>
class Pool {
  static constexpr std::align_val_t kAlign{16};
  struct Block {
    Block* next;
  };
  // Plain data, so that the hot path needs no initialisation guard; `Closer` empties it when the thread ends.
  struct List {
    Block* head;
    int count;
    bool armed;   // the thread's Closer exists
    bool closed;  // the thread is ending: later frees go to the system
  };
  struct Closer {
    ~Closer() {
      list_.closed = true;
      while (list_.head) {
        Block* next = list_.head->next;
        ::operator delete(list_.head, kAlign);
        list_.head = next;
      }
    }
  };
  static inline thread_local constinit List list_
      __attribute__((tls_model("initial-exec"))) = {nullptr, 0, false, false};
  [[gnu::noinline]] static void arm() {
    static thread_local Closer closer;
    (void)&closer;
    list_.armed = true;
  }

 public:
  static void* take() {
    void* kept = take_kept();
    return kept ? kept : ::operator new(Size, kAlign);
  }
  // nullptr where the list is empty.
  static void* take_kept() noexcept {
    if constexpr (kPooling) {
      if (Block* block = list_.head) {
        list_.head = block->next;
        --list_.count;
        return block;
      }
    }
    return nullptr;
  }
  static void give(void* memory) noexcept {
    if constexpr (kPooling) {
      if (list_.count < Limit && !list_.closed) {
        if (!list_.armed) [[unlikely]]
          arm();
        auto* block = static_cast<Block*>(memory);
        block->next = list_.head;
        list_.head = block;
        ++list_.count;
        return;
      }
    }
    ::operator delete(memory, kAlign);
  }
};

}  // namespace backplane::core
