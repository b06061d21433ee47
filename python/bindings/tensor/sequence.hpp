// Nested Python sequences of numbers as tensors.
#pragma once

#include "backplane/tensor.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// What becomes of the numbers.
struct Numbers {
  bool assigned = false;           // to elements that exist: any dtype will do
  bp_dtype dtype = BP_DTYPE_NONE;  // of those elements, or asked for: it must hold them
  bool of_tensors = false;         // out: tensors were among them, and say where the result is
  bool fresh = false;              // out: the result was made of them, and shares no memory
};

// A new host tensor of the natural dtype of the elements (bool, int64, float32, complex64; if the requested dtype
// is wider, float64 and complex128), or nullptr with a Python error. A number is a tensor of no dimensions. With
// tensors of no dimensions among the numbers it is their stack, with their dtype, device and history. Needs the
// interpreter lock.
PyObject* tensor_of_sequence(PyObject* object, Numbers& numbers) noexcept;

}  // namespace backplane::python
