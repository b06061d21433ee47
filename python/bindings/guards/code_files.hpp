// Whose code a file holds: the user's, this package's, or the interpreter's own library.
//
// All functions need the interpreter lock, and leave no Python error.
#pragma once

#include <string>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// A str's text; empty for everything else.
std::string text_of_object(PyObject* object);

// A module of the interpreter's library, not one that was installed below it.
bool is_library_file(const std::string& file);
// Code that is not looked at, nor the code that it calls: it loads modules, shows errors, or writes messages.
bool is_opaque_code(const std::string& file, const std::string& function);
// Code of this package whose objects have state, such as modules, optimisers and distributions. Its accesses are
// noted like those of users' code.
bool is_stateful_file(const std::string& file);
// The line of the user's program from which `frame` was reached: "file:line".
std::string user_line_of(PyObject* frame);

}  // namespace backplane::python
