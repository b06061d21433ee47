// Lists of hooks: their lock, and replacing one.
#include "memory/tensors/hooks.hpp"

#include "memory/process/lock.hpp"

namespace backplane::core {
namespace {

// Over all lists: it is held for the change of a pointer.
StaticLock hooks_lock{LockRank::kTape};

}  // namespace

std::shared_ptr<const Hooks::Rows> Hooks::rows_of(const List& list) {
  std::lock_guard guard(hooks_lock);
  return list.rows;
}

void Hooks::add(uint64_t id, Hook hook) {
  auto rows = std::make_shared<Rows>();
  std::shared_ptr<const Rows> before;  // outlives the guard
  std::lock_guard guard(hooks_lock);
  List* list = list_.load(std::memory_order_relaxed);
  if (!list) {
    list = new List;
    list_.store(list, std::memory_order_release);
  }
  before = list->rows;
  if (before) *rows = *before;
  rows->emplace_back(id, std::move(hook));
  list->rows = std::move(rows);
}

bool Hooks::remove(uint64_t id) {
  List* list = list_.load(std::memory_order_acquire);
  if (!list) return false;
  auto rows = std::make_shared<Rows>();
  std::shared_ptr<const Rows> before;  // outlives the guard
  std::lock_guard guard(hooks_lock);
  before = list->rows;
  if (!before) return false;
  for (const auto& row : *before)
    if (row.first != id) rows->push_back(row);
  const bool found = rows->size() < before->size();
  list->rows = rows->empty() ? nullptr : std::move(rows);
  return found;
}

}  // namespace backplane::core
