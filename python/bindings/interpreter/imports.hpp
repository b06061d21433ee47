// Modules for code that runs while code of a user's does.
#pragma once

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// The module, imported if it is not yet; empty with a Python error. PyImport_ImportModule looks for `__import__` in the
// globals of the running frame, and a function may have globals without it.
PyRef imported_module(const char* name);

}  // namespace backplane::python
