// Tensors that stand for others in the calls of a scope: a function that was traced uses tensors from outside, and
// finds the values that they have in the call that runs now. The tensors themselves may belong to a trace that has
// ended.
#pragma once

#include <vector>

#include "call/dispatch.hpp"
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
  ~ReplacedTensors();
  ReplacedTensors(const ReplacedTensors&) = delete;
  static bool any() noexcept;
  // The tensor that stands for this one now, or this one.
  static TensorImpl* value_of(TensorImpl* tensor) noexcept;
  // All that is replaced now.
  static Pairs now();

 private:
  const Pairs pairs_;
  const ReplacedTensors* const outer_;
};

// A call with the tensors that stand for its arguments. Borrows from the call. Throws where it writes into such an
// argument.
class WithReplaced {
 public:
  explicit WithReplaced(const Call& call);
  bool any() const { return any_; }
  Call call() const { return {call_.op, args_, call_.n_args, call_.outs, call_.n_outs, call_.mask}; }

 private:
  const Call& call_;
  bp_value args_[kMaxArgs];
  TensorLists lists_;
  bool any_ = false;
};

}  // namespace backplane::core
