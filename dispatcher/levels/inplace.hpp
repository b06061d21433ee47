// In-place changes of tensors of levels, through views too.
#pragma once

#include <string>

#include "levels/level.hpp"

namespace backplane::core {

// A view whose base was changed takes its value anew from the base.
void refresh(TensorImpl* view);
// The same for a view that was written through as well: it is what its call gives of the base now.
void force_refresh(TensorImpl* view);
// While one lives, this thread changes no tensor of a level in place that is older. For the rules of a function: they
// state the derivatives of its results, and a value that it writes elsewhere would lose its own.
class KeepsOlderTensors {
 public:
  explicit KeepsOlderTensors(const std::string& function) noexcept;
  ~KeepsOlderTensors();
  KeepsOlderTensors(const KeepsOlderTensors&) = delete;
  // Throws where `whole`, a wrapper and not a view, must not be changed.
  static void check(const Call& call, const TensorImpl& whole);

 private:
  const KeepsOlderTensors* outer_;
  const std::string& function_;
  uint64_t older_;  // the numbers up to this one
};
// A call with a given out slot. `level` is the highest level concerned.
void change_in_place(Level& level, const Call& call);

}  // namespace backplane::core
