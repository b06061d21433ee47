// Optional weights and biases of norms, as contiguous elements of the type computed in.
#pragma once

#include <optional>

#include "loops/cast_row.hpp"
#include "loops/elementwise.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {

template <class T>
T* elements(const bp_value& value) {
  return value.tag == BP_TAG_TENSOR ? reinterpret_cast<T*>(data_of(value.u.t)) : nullptr;
}

// Half floats are widened once per call; others are read where they lie.
template <class S>
class NormOperand {
 public:
  using C = plugin::Compute<S>;
  explicit NormOperand(const bp_value& value) {
    if (value.tag != BP_TAG_TENSOR) return;
    const bp_tensor* t = value.u.t;
    if constexpr (std::is_same_v<S, C>) {
      elements_ = elements<const S>(value);
    } else {
      const auto n = static_cast<int64_t>(t->nbytes / sizeof(S));
      widened_.emplace(n);
      cast_row(t->dtype, data_of(t), sizeof(S), plugin::kDtypeOf<C>, reinterpret_cast<char*>(widened_->get()),
               sizeof(C), n);
      elements_ = widened_->get();
    }
  }
  const C* get() const { return elements_; }
  C at(int64_t i, C otherwise) const { return elements_ != nullptr ? elements_[i] : otherwise; }

 private:
  std::optional<Scratch<C>> widened_;
  const C* elements_ = nullptr;
};

}  // namespace backplane::cpu
