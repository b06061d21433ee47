// What a user may hand over as data: tensors, arrays of other libraries, sequences, numbers.
#pragma once

#include "py_ref.hpp"

namespace backplane::python {

// asarray(obj, /, dtype=None, device=None, copy=None), with CPython's METH_VARARGS | METH_KEYWORDS convention.
PyObject* asarray_object(PyObject* module, PyObject* args, PyObject* kwargs);

// An array of another library. Text is none, nor are NumPy's dates: they export their bytes, without strides.
bool is_foreign_array(PyObject* object) noexcept;

// A tensor of any of these, sharing memory where that is possible; a new reference. Needs the interpreter lock.
PyObject* tensor_of_data(PyObject* object) noexcept;

}  // namespace backplane::python
