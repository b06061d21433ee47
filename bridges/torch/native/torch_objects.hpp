// Objects of PyTorch's Python. All functions need the interpreter lock.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "python_values.hpp"

namespace backplane_torch {

// Throws the current Python error, which PyTorch raises again as it is.
[[noreturn]] void throw_pending();
// The new reference, or the current Python error.
Object owned(PyObject* made);

// An argument as PyTorch's Python has it. `kind`: as of register_op.
Object torch_object(const c10::IValue& value, char kind);
Object tensor_list_object(const std::vector<at::Tensor>& tensors);
std::vector<at::Tensor> tensors_of(PyObject* sequence);

}  // namespace backplane_torch
