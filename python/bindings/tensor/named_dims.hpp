// Operands with named dimensions (backplane._dims). They are not tensors: calls of ops, x[index] and asarray hand them
// to the package's functions. Until the package has set these, no call looks for such operands.
//
// All functions need the interpreter lock.
#pragma once

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// set_named_dims(type, call, get_item, set_item, asarray): the type of these operands, and the functions.
PyObject* set_named_dims(PyObject* module, PyObject* args);

// Is it such an operand, or a tuple or list that contains one at any depth?
bool has_named_dims(PyObject* object) noexcept;
// Is one among the arguments of a call?
bool any_has_named_dims(PyObject* const* args, size_t n_positional, PyObject* keywords) noexcept;

// A new reference; NULL with a Python error.
PyObject* call_with_named_dims(PyObject* function, PyObject* const* args, size_t n_positional, PyObject* keywords);
PyObject* get_item_by_named_dims(PyObject* tensor, PyObject* key);
PyObject* asarray_of_named_dims(PyObject* object, PyObject* dtype, PyObject* device, PyObject* copy);
int set_item_by_named_dims(PyObject* tensor, PyObject* key, PyObject* value);

}  // namespace backplane::python
