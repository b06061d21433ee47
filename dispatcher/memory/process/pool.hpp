// Per-thread free lists for the small objects of the call path: tensors, storages, autograd nodes.
//
// A block goes back to the list of the thread that frees it, up to a limit; the rest go to the system. Sanitizer
// builds keep no lists, so that a use after free is seen.
#pragma once

#include <cstddef>
#include <cstdint>
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
  // Plain data, so that the hot path needs no initialisation guard; `Closer` empties it when the thread ends. A list
  // has room from its first block on, for which the thread's Closer is made, until that ran: one question for three.
  enum class Life : uint8_t { kUnused, kOpen, kClosed };
  struct List {
    Block* head;
    int room;
    Life life;
  };
  struct Closer {
    ~Closer() {
      list_.room = 0;
      list_.life = Life::kClosed;
      while (list_.head) {
        Block* next = list_.head->next;
        ::operator delete(list_.head, kAlign);
        list_.head = next;
      }
    }
  };
  static inline thread_local constinit List list_
      __attribute__((tls_model("initial-exec"))) = {nullptr, 0, Life::kUnused};
  static void keep(void* memory) noexcept {
    auto* block = static_cast<Block*>(memory);
    block->next = list_.head;
    list_.head = block;
    --list_.room;
  }
  [[gnu::noinline]] static void give_without_room(void* memory) noexcept {
    if (!kPooling || list_.life != Life::kUnused) return ::operator delete(memory, kAlign);
    static thread_local Closer closer;
    (void)&closer;
    list_.life = Life::kOpen;
    list_.room = Limit;
    keep(memory);
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
        ++list_.room;
        return block;
      }
    }
    return nullptr;
  }
  static void give(void* memory) noexcept {
    if (list_.room > 0) [[likely]]
      return keep(memory);
    give_without_room(memory);
  }
};

}  // namespace backplane::core
