// Modules for code that runs inside a trace function.
#pragma once

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// A module, imported where it is not yet; empty with a Python error. PyImport_ImportModule asks the running frame's
// globals for `__import__`, which those of a function may lack.
PyRef imported_module(const char* name);

}  // namespace backplane::python
