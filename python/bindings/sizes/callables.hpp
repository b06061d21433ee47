// What kind of code a callable runs: of Python, which is watched itself; of this package; of C.
//
// All functions need the interpreter lock, and leave no Python error.
#pragma once

#include <string>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// An array or a number of NumPy's.
bool is_of_numpy(PyObject* object);
// The callable's name, or the name of its class.
std::string name_of_callable(PyObject* callable);
// A function, class or method of this package.
bool is_ours(PyObject* callable);
// Code of Python, which is looked at itself.
bool is_python_callable(PyObject* callable);

}  // namespace backplane::python
