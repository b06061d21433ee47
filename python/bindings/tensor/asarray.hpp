// What a user may hand over as data: tensors, arrays of other libraries, sequences, numbers.
#pragma once

#include "backplane/abi/base.h"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// asarray(obj, /, dtype=None, *, device=None, copy=None, order=None), with CPython's METH_VARARGS | METH_KEYWORDS
// convention.
PyObject* asarray_object(PyObject* module, PyObject* args, PyObject* kwargs);

// An array of another library. Not text or NumPy's dates: they export their bytes, without strides.
bool is_foreign_array(PyObject* object) noexcept;
// One of those that may stand for a tensor: a masked array would lose its mask.
bool stands_for_tensor(PyObject* array) noexcept;

// A tensor of any of these, sharing memory where that is possible; a new reference. Numbers are to become elements of
// `dtype`, where there is one, and must fit it. Needs the interpreter lock.
PyObject* tensor_of_data(PyObject* object, bp_dtype dtype = BP_DTYPE_NONE) noexcept;

}  // namespace backplane::python
