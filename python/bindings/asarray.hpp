// What a user may hand over as data: tensors, arrays of other libraries, sequences, numbers.
#pragma once

#include "py_ref.hpp"

namespace backplane::python {

// asarray(obj, /, dtype=None, device=None, copy=None), with CPython's METH_VARARGS | METH_KEYWORDS convention.
PyObject* asarray_object(PyObject* module, PyObject* args, PyObject* kwargs);

// A tensor of any of these, sharing memory where that is possible; a new reference. Needs the interpreter lock.
PyObject* tensor_of_data(PyObject* object) noexcept;

}  // namespace backplane::python
