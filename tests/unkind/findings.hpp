// What the host did that the contract does not allow. The first ones are kept as text. Any thread.
#pragma once

#include <mutex>
#include <string>
#include <vector>

namespace unkind {

class Findings {
 public:
  void add(std::string text);                // also to stderr
  [[noreturn]] void fail(std::string text);  // add, and throw Error(BP_ERROR_INTERNAL)
  size_t count() const;
  std::string first() const;  // "" where there is none
  void clear();

 private:
  static constexpr size_t kKept = 20;
  mutable std::mutex mutex_;
  size_t count_ = 0;                // guarded by mutex_
  std::vector<std::string> texts_;  // guarded by mutex_
};

}  // namespace unkind
