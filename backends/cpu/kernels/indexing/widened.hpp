// A half-float tensor in float32, for ops that combine many values into it: the sums are kept in float32 and rounded
// once. In memory of its own, contiguous, as the tensor that is widened must be; `round_to` writes the result.
#pragma once

#include "loops/cast_row.hpp"
#include "loops/elementwise.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {

inline int64_t elements_of(const bp_tensor* t) { return static_cast<int64_t>(t->nbytes) / plugin::kItemSize[t->dtype]; }

class Widened {
 public:
  explicit Widened(const bp_tensor* half) : memory_(elements_of(half)), tensor_(*half) {
    tensor_.dtype = BP_FLOAT32;
    tensor_.dl.dtype.bits = 32;
    tensor_.dl.dtype.code = kDLFloat;
    tensor_.dl.data = memory_.get();
    tensor_.dl.byte_offset = 0;
    tensor_.nbytes = static_cast<uint64_t>(elements_of(half)) * sizeof(float);
    cast_row(half->dtype, data_of(half), plugin::kItemSize[half->dtype], BP_FLOAT32, data_of(&tensor_), sizeof(float),
             elements_of(half));
  }
  const bp_tensor* get() const { return &tensor_; }
  void round_to(const bp_tensor* half) const {
    cast_row(BP_FLOAT32, data_of(&tensor_), sizeof(float), half->dtype, data_of(half), plugin::kItemSize[half->dtype],
             elements_of(half));
  }

 private:
  Scratch<float> memory_;
  bp_tensor tensor_;
};

// Do `values` into `out`, which begins as x, pay for it? A few do not pay for widening the whole target.
inline bool pays_to_widen(const bp_tensor* x, const bp_tensor* values, const bp_tensor* out) {
  const bool half = out->dtype == BP_FLOAT16 || out->dtype == BP_BFLOAT16;
  return half && (x->flags & out->flags & BP_TENSOR_CONTIGUOUS) != 0 && elements_of(values) >= elements_of(out) / 4;
}

}  // namespace backplane::cpu
