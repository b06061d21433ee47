// Between Python's numbers and values: reading a number as a bp_value, and elements of tensors as Python objects.
//
// All functions need the interpreter lock.
#pragma once

#include "backplane/tensor.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// Reads bool, int, float, complex and objects with __index__, __float__ or __complex__ that are not containers (NumPy's
// scalars). `pair` (two doubles) holds a complex value and must outlive `value`. Returns 1, 0 for anything else, -1
// with a Python error (an int below -2^63 or above 2^64 - 1).
int read_number(PyObject* object, bp_value* value, double* pair) noexcept;
// The value of a traced number (number_hook.hpp) without a look at it. 0: an int beyond 64 bits.
int read_traced_number(PyObject* number, bp_value* value) noexcept;

// After read_number failed: an int of any size for an op that compares, and the error is cleared. False: no int.
bool read_compared(PyObject* object, bp_value* value) noexcept;

// The int of an object with __index__; a bool does not count as an int. Returns as read_number does.
int read_int(PyObject* object, int64_t* value) noexcept;

// The element of `dtype` at `address`, a new reference.
PyObject* element_to_python(bp_dtype dtype, const void* address) noexcept;

// The tensor itself; of one inside a transform its primal value, which can be read. Throws where it differs from row to
// row of a batch; `who` is the caller in that error.
Tensor plain_tensor(bp_tensor* tensor, const char* who);

// The same for a conversion that passes the elements to other code. Throws if a transform differentiates the tensor,
// because its derivative would silently be lost there.
Tensor readable_tensor(bp_tensor* tensor, const char* who);
// The same for a door to another library. Throws also where the tape would record an op on the tensor.
Tensor exportable_tensor(bp_tensor* tensor, const char* who);

// The only element of the tensor, after waiting for it; `op` names the caller in the error.
PyObject* single_element(bp_tensor* tensor, const char* op) noexcept;
// How often this thread took the element of a tensor that a transform differentiates.
uint64_t differentiated_elements() noexcept;

}  // namespace backplane::python
