// The tensors that a call makes on its way, and lets go of at its end.
#pragma once

#include <vector>

#include "memory/tensors/tensor_impl.hpp"

namespace backplane::core {

class Temporaries {
 public:
  Temporaries() = default;
  Temporaries(const Temporaries&) = delete;
  ~Temporaries() {
    for (int i = 0; i < count_; ++i) release(held_[i]);
    for (TensorImpl* t : more_) release(t);
  }
  TensorImpl* keep(TensorImpl* t) {
    if (count_ < kInline)
      held_[count_++] = t;
    else
      more_.push_back(t);
    return t;
  }
  TensorImpl* keep(Tensor t) { return keep(impl(t.detach_handle())); }

 private:
  static constexpr int kInline = 8;
  int count_ = 0;
  TensorImpl* held_[kInline];
  std::vector<TensorImpl*> more_;
};

}  // namespace backplane::core
