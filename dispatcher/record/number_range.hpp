// Numbers that stand for elements of a dtype: those that it holds, and what becomes of the others.
//
// A number meets a dtype where a kernel's arguments are prepared (device_call.cpp), and nowhere else. One that an
// integer dtype does not hold, or a complex one where the dtype is real, is refused there; an op that compares is asked
// again with an infinity in its place. A complex Scalar that meets no dtype, since it does not promote, is refused
// where a call begins (dispatch.cpp). Pure functions; any thread.
#pragma once

#include <string>

#include "record/op_record.hpp"

namespace backplane::core {

// A bool, an int of any size or a float.
double real_of_number(const bp_value& number) noexcept;

// Floats count by their whole part, which is what a cast keeps of them.
bool holds_number(bp_dtype dtype, const bp_value& number) noexcept;

// BP_ERROR_OVERFLOW for a number outside an integer dtype's range, BP_ERROR_DTYPE for a complex one in a real dtype.
[[noreturn]] void fail_number(bp_dtype dtype, const bp_value& number, const std::string& place);
inline void check_number(bp_dtype dtype, const bp_value& number, const OpRecord& op, int32_t arg) {
  if (!holds_number(dtype, number)) [[unlikely]]
    fail_number(dtype, number, std::string(op.name) + ": argument '" + op.args[static_cast<size_t>(arg)].name + "'");
}

// Refuses argument `arg`, a complex number, where it is a Scalar outside promotion beside a real result, to which its
// imaginary part would be lost. An op that promotes none of its tensors computes in no dtype that the core knows.
void check_complex_scalar(const OpRecord& op, const bp_value* args, int32_t n_args, int32_t arg);

// For an op that compares: the arguments with infinities for ints beyond the integers of `compute`. These integers
// are all finite in floating point. False without such ints.
bool with_infinities(const OpRecord& op, const bp_value* args, int32_t n_args, bp_dtype compute, bp_value* replaced);

}  // namespace backplane::core
