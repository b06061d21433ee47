// Which line of a Python program called an op: the innermost frame that is not the package's own.
#pragma once

#include <string_view>

#include "backplane/graph.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// With or without the interpreter lock. Line 0: no Python frame.
SourceLine user_line();

// Where the user's program was when this exception was raised: the innermost frame of its trace that is not the
// package's own. Needs the lock. Line 0: unknown.
SourceLine line_of_exception(PyObject* exception);

// Is it a file of the package itself?
bool is_package_file(std::string_view file);

// Files below this folder are the package's own.
PyObject* set_package_folder(PyObject* module, PyObject* folder);

}  // namespace backplane::python
