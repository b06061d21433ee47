// A tensor of a small floating dtype in a wider one, for ops that combine many values into it: sums are kept in float64
// (complex128) and rounded once. In memory of its own, contiguous, as the tensor that is widened must be; `round_to`
// writes the result.
#pragma once

#include "loops/cast_row.hpp"
#include "loops/elementwise.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {

inline int64_t elements_of(const bp_tensor* t) { return static_cast<int64_t>(t->nbytes) / plugin::kItemSize[t->dtype]; }

inline constexpr bp_dtype_mask kNarrow =
    BP_DTYPE_BIT(BP_FLOAT16) | BP_DTYPE_BIT(BP_BFLOAT16) | BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_COMPLEX64);

class Widened {
 public:
  static bp_dtype dtype_of(bp_dtype narrow) { return narrow == BP_COMPLEX64 ? BP_COMPLEX128 : BP_FLOAT64; }
  explicit Widened(const bp_tensor* narrow)
      : tensor_(*narrow), memory_(elements_of(narrow) * plugin::kItemSize[dtype_of(narrow->dtype)]) {
    tensor_.dtype = dtype_of(narrow->dtype);
    tensor_.dl.dtype.bits = static_cast<uint8_t>(8 * plugin::kItemSize[tensor_.dtype]);
    tensor_.dl.data = memory_.get();
    tensor_.dl.byte_offset = 0;
    tensor_.nbytes = static_cast<uint64_t>(elements_of(narrow) * plugin::kItemSize[tensor_.dtype]);
    cast_row(narrow->dtype, data_of(narrow), plugin::kItemSize[narrow->dtype], tensor_.dtype, data_of(&tensor_),
             plugin::kItemSize[tensor_.dtype], elements_of(narrow));
  }
  const bp_tensor* get() const { return &tensor_; }
  void round_to(const bp_tensor* narrow) const {
    cast_row(tensor_.dtype, data_of(&tensor_), plugin::kItemSize[tensor_.dtype], narrow->dtype, data_of(narrow),
             plugin::kItemSize[narrow->dtype], elements_of(narrow));
  }

 private:
  bp_tensor tensor_;
  Scratch<char> memory_;
};

// Values of a few do not pay for widening the whole target: they are added one by one, and those that meet in groups
// (grouped.hpp).
inline bool pays_to_widen(const bp_tensor* x, const bp_tensor* values, const bp_tensor* out) {
  const bool narrow = (BP_DTYPE_BIT(out->dtype) & kNarrow) != 0;
  return narrow && (x->flags & out->flags & BP_TENSOR_CONTIGUOUS) != 0 && elements_of(values) >= elements_of(out) / 4;
}

}  // namespace backplane::cpu
