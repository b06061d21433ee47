// Nested Python sequences of numbers as tensors.
#pragma once

#include "backplane/tensor.hpp"
#include "py_ref.hpp"

namespace backplane::python {

// A new host tensor of the natural dtype of what was found (bool, int64, float32, complex64; with `wide` float64 and
// complex128), or nullptr with a Python error. A number is a tensor of no dimensions. Needs the interpreter lock.
PyObject* tensor_of_sequence(PyObject* object, bool wide) noexcept;

}  // namespace backplane::python
