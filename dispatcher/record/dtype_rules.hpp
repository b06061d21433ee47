// Promotion, and the dtypes of a call's results by the record's rule.
//
// The table of the array API standard, with further promotions (design.md section 4). Pure functions; they throw
// Error(BP_ERROR_DTYPE) with the op, the argument, the dtype found and the accepted ones.
#pragma once

#include <array>

#include "record/rule_functions.hpp"

namespace backplane::core {

inline constexpr bp_dtype kDefaultFloat = BP_FLOAT32;

constexpr bool is_in(bp_dtype dtype, bp_dtype_mask mask) { return (BP_DTYPE_BIT(dtype) & mask) != 0; }

using PromotionTable = std::array<std::array<bp_dtype, BP_DTYPE_COUNT>, BP_DTYPE_COUNT>;
extern const PromotionTable kPromotion;  // BP_DTYPE_NONE: refused
extern const uint8_t kItemSize[BP_DTYPE_COUNT];
extern const char* const kDtypeNames[BP_DTYPE_COUNT];
extern const DLDataType kDLDtypes[BP_DTYPE_COUNT];
bp_dtype dtype_from_dlpack(DLDataType dtype) noexcept;  // BP_DTYPE_NONE: none of ours

// A Python number is weak: it takes the tensor's dtype where its kind allows, else the default of its kind.
bp_dtype promote_number(bp_dtype tensor, uint16_t number_tag) noexcept;
bp_dtype number_dtype(uint16_t number_tag) noexcept;  // the default of its kind: bool, int64, float32, complex64

// A mask of before 0.3 and the set that was appended to its struct. Every dtype of today is among the first 32.
constexpr bp_dtype_mask mask_of(bp_dtype_mask mask, bp_dtype_set set) {
  static_assert(BP_DTYPE_COUNT <= 32, "a dtype outside of a mask was added: the core needs sets");
  return mask | static_cast<bp_dtype_mask>(set);
}

// The compute dtype: promotion over the record's `promote` set, then checks of every argument's `accepts`. With no
// tensor among them: what the first result's rule states, else the default of the strongest number, else of floats.
bp_dtype promoted_dtype(const OpRecord& op, const bp_value* args);  // any call
// Of an op that adds in a stated dtype, whose tensors have `compute`.
bp_dtype stated_compute_dtype(const OpRecord& op, const bp_value* args, bp_dtype compute);
inline bp_dtype compute_dtype(const OpRecord& op, const bp_value* args, int32_t) {
  // One tensor, or two of one dtype.
  if (op.n_alike != 0 && args[0].tag == BP_TAG_TENSOR) [[likely]] {
    const bp_tensor& x = *args[0].u.t;
    const bp_value& y = args[op.n_alike - 1];
    if (y.tag == BP_TAG_TENSOR && y.u.t->dtype == x.dtype && !((x.flags | y.u.t->flags) & BP_TENSOR_NUMBER) &&
        (BP_DTYPE_BIT(x.dtype) & op.alike_dtypes)) [[likely]]
      return op.adds_in_stated ? stated_compute_dtype(op, args, x.dtype) : x.dtype;
  }
  return promoted_dtype(op, args);
}

bp_dtype stated_result_dtype(const OpRecord& op, const bp_result_dtype& rule, const bp_value* args, bp_dtype compute);
inline bp_dtype result_dtype(const OpRecord& op, const bp_value* args, int32_t n_args, int32_t index,
                             bp_dtype compute) {
  const bp_result_dtype& rule = op.dtypes[static_cast<size_t>(index)];
  if (rule.kind == BP_RESULT_DTYPE_COMPUTE) [[likely]]
    return compute;
  if (rule.kind == BP_RESULT_DTYPE_FUNCTION) return dtype_by_function(op, args, n_args, index);
  return stated_result_dtype(op, rule, args, compute);
}

bp_dtype real_dtype(bp_dtype dtype) noexcept;
bp_dtype complex_dtype(bp_dtype dtype) noexcept;
bp_dtype accumulate_dtype(bp_dtype dtype) noexcept;

// bool < integer < floating < complex. A value may be written into a tensor of the same or a higher kind.
inline int dtype_kind(bp_dtype dtype) {
  const bp_dtype_mask bit = BP_DTYPE_BIT(dtype);
  return bit & BP_MASK_BOOL ? 0 : bit & BP_MASK_INTEGER ? 1 : bit & BP_MASK_FLOATING ? 2 : 3;
}

}  // namespace backplane::core
