// Calls that make text of objects, which a graph cannot make of tensors again.
#pragma once

#include <Python.h>

#include <string_view>
#include <vector>

namespace backplane::python {

// Of a function of C; empty: it is another object.
std::string_view name_of_c_function(PyObject* function);

// Does the call make text of its arguments, or hand a function that does to one of C, as map(str, x)? What code of
// Python does with such a function is seen where it calls it.
bool may_make_text(PyObject* function, const std::vector<PyObject*>& arguments);

// Is it a tensor, or a container of the interpreter's own that shows one in its text?
bool shows_tensor(PyObject* object);

}  // namespace backplane::python
