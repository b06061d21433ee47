// Which line of a Python program called an op: the innermost frame that is not the package's own.
#pragma once

#include "backplane/graph.hpp"
#include "bindings/system/py_ref.hpp"

namespace backplane::python {

// With or without the interpreter lock. Line 0: no Python frame.
SourceLine user_line();

// Files below this folder are the package's own.
PyObject* set_package_folder(PyObject* module, PyObject* folder);

}  // namespace backplane::python
