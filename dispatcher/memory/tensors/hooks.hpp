// The hooks of a leaf or of a node, which any thread may add and remove while passes run.
//
// The list is replaced, never changed: a pass runs the hooks of the list that it read, even if hooks or other threads
// add or remove some meanwhile. Without hooks it costs one pointer. A hook is let go of outside the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backplane/autograd.hpp"

namespace backplane::core {

class Hooks {
 public:
  using Rows = std::vector<std::pair<uint64_t, Hook>>;

  Hooks() = default;
  Hooks(const Hooks&) = delete;
  ~Hooks() { delete list_.load(std::memory_order_acquire); }

  // nullptr where there are none.
  std::shared_ptr<const Rows> snapshot() const {
    const List* list = list_.load(std::memory_order_acquire);
    return list ? rows_of(*list) : nullptr;
  }
  void add(uint64_t id, Hook hook);
  bool remove(uint64_t id);  // was it there?

 private:
  struct List {
    std::shared_ptr<const Rows> rows;
  };
  static std::shared_ptr<const Rows> rows_of(const List& list);
  std::atomic<List*> list_{nullptr};  // owned; made with the first hook
};

}  // namespace backplane::core
