// The Python function behind a callable.
#pragma once

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// Behind methods, transforms, decorators and objects that are called; each `self` counts a position. The result may
// not be a function. Needs the interpreter lock.
PyRef python_function(PyObject* callable, Py_ssize_t* position = nullptr);

}  // namespace backplane::python
