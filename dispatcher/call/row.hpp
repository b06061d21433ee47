// Choosing the row that takes a call, numbers in the form that it takes, and saying clearly why none does.
#pragma once

#include <string>

#include "call/formulas/temporaries.hpp"
#include "call/result_shapes.hpp"

namespace backplane::core {

// Why no row took a call, for the missing-kernel error.
struct Refusals {
  std::string text;
};

// The best row that takes the call, or nullptr. `why` (may be null) collects the reasons of those that do not.
const KernelRow* pick_row(const Call& call, const Device& device, bp_dtype compute, ResultShapes& shapes,
                          Refusals* why);

// The compute dtype, or a result's, in which the device does not compute; BP_DTYPE_NONE if it computes in all.
bp_dtype lacked_dtype(const Call& call, const Device& device, bp_dtype compute);
[[noreturn]] void throw_missing_kernel(const Call& call, Device& device, bp_dtype compute, const Refusals& why);

// The number as a tensor without axes.
Tensor tensor_of_number(bp_value number, bp_dtype dtype, const Device& device, uint64_t mask);
// A number in a tensor position: in the compute dtype's kind for rows that take immediates, else a tensor.
bp_value prepare_number(const bp_value& number, const KernelRow& row, Device& device, bp_dtype compute,
                        double (&complex_storage)[2], Temporaries& temporaries);

}  // namespace backplane::core
