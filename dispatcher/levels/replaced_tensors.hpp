// Tensors that stand for others in the calls of a scope: a function that was traced uses tensors from outside, and
// finds the values that they have in the call that runs now. The tensors themselves may belong to a trace that has
// ended.
#pragma once

#include <vector>

#include "call/dispatch.hpp"
#include "levels/level.hpp"
#include "memory/tensors/history.hpp"
#include "record/mapped_value.hpp"

namespace backplane::core {

class ReplacedTensors {
 public:
  struct Pairs {
    std::vector<Tensor> tensors, values;  // as many of each
  };
  // Scopes nest: a tensor that the inner one puts in the place of another may be replaced by the outer one.
  explicit ReplacedTensors(Pairs pairs);
  // Only while the thread is inside `level`, whose tensors the values are. Writes into them reach the tensors.
  ReplacedTensors(Pairs pairs, const Level& level);
  ~ReplacedTensors();
  ReplacedTensors(const ReplacedTensors&) = delete;
  // From now on one more tensor is replaced, or no longer, where `value` is empty.
  void replace(const Tensor& tensor, const Tensor& value);
  static bool any() noexcept;
  // The tensor that stands for this one now, or this one.
  static TensorImpl* value_of(TensorImpl* tensor) noexcept;
  // May a call write into the tensor, or into what stands for it?
  static bool takes_writes(TensorImpl* tensor) noexcept;
  // All that is replaced now.
  static Pairs now();

 private:
  bool is_active() const noexcept;
  TensorImpl* found(TensorImpl* tensor) const noexcept;  // nullptr: not replaced here

  Pairs pairs_;
  const Level* const level_ = nullptr;
  const ReplacedTensors* const outer_;
};

// A call with the tensors that stand for its arguments. Borrows from the call. Throws where it writes into such an
// argument and may not.
class WithReplaced {
 public:
  explicit WithReplaced(const Call& call);
  bool any() const { return any_; }
  void dispatch();

 private:
  const Call& call_;
  bp_value args_[kMaxArgs], outs_[kMaxResults];
  TensorLists lists_;
  bool any_ = false;
};

}  // namespace backplane::core
