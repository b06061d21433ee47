// What the interpreter looks up in a class by itself: the order of its bases, and its special methods.
//
// All functions need the interpreter lock, and leave no Python error.
#pragma once

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// Can code of Python change the class?
bool is_changeable(PyTypeObject* type) noexcept;
// The order of bases, and what the class and its bases have under each special name: a tuple.
PyRef class_protocol(PyTypeObject* type);
// Has the class the same ones?
bool holds_protocol(PyObject* protocol, PyTypeObject* type) noexcept;
// The interpreter's number of the class's state, which another one gets when anything in the class or its bases is set;
// 0: it has none now.
unsigned class_version(PyTypeObject* type) noexcept;

}  // namespace backplane::python
