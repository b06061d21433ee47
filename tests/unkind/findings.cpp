#include "findings.hpp"

#include <cstdio>
#include <utility>

#include "backplane/error.hpp"

namespace unkind {

void Findings::add(std::string text) {
  std::lock_guard lock(mutex_);
  ++count_;
  if (texts_.size() == kKept) return;
  std::fprintf(stderr, "unkind: %s\n", text.c_str());
  texts_.push_back(std::move(text));
}

void Findings::fail(std::string text) {
  add(text);
  throw backplane::Error(BP_ERROR_INTERNAL, "unkind: " + text);
}

size_t Findings::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

std::string Findings::first() const {
  std::lock_guard lock(mutex_);
  return texts_.empty() ? "" : texts_.front();
}

void Findings::clear() {
  std::lock_guard lock(mutex_);
  count_ = 0;
  texts_.clear();
}

}  // namespace unkind
