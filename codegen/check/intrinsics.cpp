// The functions that every dialect brings. How each spells them: emit/scalar_dialects.cpp; what those that a dialect
// lacks are made of: emit/scalar_math.cpp.
#include <algorithm>

#include "check/scalar.hpp"

namespace backplane::codegen {
namespace {

constexpr bp_dtype_mask kFloats = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64);

// C's functions for floating numbers, special values included; round takes ties to even. Of integers: floor_divide and
// fmod give 0 for a divisor of 0, and wrap; pow takes its exponent as unsigned, and wraps; a shift by the width or more
// shifts everything out.
constexpr Intrinsic kIntrinsics[] = {
    {"sqrt", kFloats, 1},
    {"exp", kFloats, 1},
    {"expm1", kFloats, 1},
    {"log", kFloats, 1},
    {"log1p", kFloats, 1},
    {"sin", kFloats, 1},
    {"cos", kFloats, 1},
    {"atan", kFloats, 1},
    {"tanh", kFloats, 1},
    {"erf", kFloats, 1},
    {"floor", kFloats, 1},
    {"ceil", kFloats, 1},
    {"trunc", kFloats, 1},
    {"round", kFloats, 1},
    {"abs", kFloats, 1},
    {"pow", kFloats | BP_MASK_INTEGER, 2},
    {"atan2", kFloats, 2},
    {"fmod", kFloats | BP_MASK_INTEGER, 2},
    {"hypot", kFloats, 2},
    {"copysign", kFloats, 2},
    {"floor_divide", BP_MASK_INTEGER, 2},
    {"bitwise_and", BP_MASK_INTEGER, 2},
    {"bitwise_or", BP_MASK_INTEGER, 2},
    {"bitwise_xor", BP_MASK_INTEGER, 2},
    {"bitwise_invert", BP_MASK_INTEGER, 1},
    {"bitwise_left_shift", BP_MASK_INTEGER, 2},
    {"bitwise_right_shift", BP_MASK_INTEGER, 2},
};

}  // namespace

const Intrinsic* find_intrinsic(std::string_view op, bp_dtype dtype) {
  const auto* found = std::find_if(std::begin(kIntrinsics), std::end(kIntrinsics), [&](const Intrinsic& intrinsic) {
    return intrinsic.op == op && (intrinsic.dtypes >> dtype & 1) != 0;
  });
  return found == std::end(kIntrinsics) ? nullptr : found;
}

std::vector<std::string_view> intrinsic_names(bp_dtype dtype) {
  std::vector<std::string_view> names;
  for (const Intrinsic& intrinsic : kIntrinsics)
    if ((intrinsic.dtypes >> dtype & 1) != 0) names.push_back(intrinsic.op);
  return names;
}

}  // namespace backplane::codegen
