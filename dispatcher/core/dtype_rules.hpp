// Promotion, and the dtypes of a call's results by the record's rule.
//
// The table is that of the array API standard, completed as design.md section 4 says. Pure functions; they throw
// Error(BP_ERROR_DTYPE) with the op, the argument, what was found and what is accepted.
#pragma once

#include "core/op_record.hpp"

namespace backplane::core {

inline constexpr bp_dtype kDefaultFloat = BP_FLOAT32;

extern const bp_dtype kPromotion[BP_DTYPE_COUNT][BP_DTYPE_COUNT];  // BP_DTYPE_NONE: refused
extern const uint8_t kItemSize[BP_DTYPE_COUNT];
extern const char* const kDtypeNames[BP_DTYPE_COUNT];
extern const DLDataType kDLDtypes[BP_DTYPE_COUNT];
bp_dtype dtype_from_dlpack(DLDataType dtype) noexcept;  // BP_DTYPE_NONE: none of ours

// A Python number is weak: it takes the tensor's dtype where its kind allows, else the default of its kind.
bp_dtype promote_number(bp_dtype tensor, uint16_t number_tag) noexcept;
bp_dtype number_dtype(uint16_t number_tag) noexcept;  // the default of its kind: bool, int64, float32, complex64

// The compute dtype: promotion over the record's `promote` set, then checks of every argument's `accepts`. With no
// tensor among them: what the first result's rule states, else the default of the strongest number, else of floats.
bp_dtype compute_dtype(const OpRecord& op, const bp_value* args, int32_t n_args);
bp_dtype result_dtype(const OpRecord& op, const bp_value* args, int32_t n_args, int32_t index, bp_dtype compute);

bp_dtype real_dtype(bp_dtype dtype) noexcept;
bp_dtype complex_dtype(bp_dtype dtype) noexcept;
bp_dtype accumulate_dtype(bp_dtype dtype) noexcept;

}  // namespace backplane::core
