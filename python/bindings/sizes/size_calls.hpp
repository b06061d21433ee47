// Which instructions of Python would lose sight of a size (size_log.hpp): code of C reads the digits of an int without
// asking its type. Such a use is noted, or the instruction is given an operand that keeps sight of it.
//
// Called before an instruction runs, with the places of its operands on the interpreter's stack. All functions need
// the interpreter lock, and leave no Python error.
#pragma once

#include <span>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// An operator or a comparison of two.
void note_size_operands(PyObject** left, PyObject** right);
// container[key], also where something is stored there.
void note_size_subscript(PyObject* container, PyObject* key);
// value in container.
void note_size_search(PyObject* value, PyObject* container);
void note_size_attribute(PyObject* object, PyObject* name);
// `callable`: its place; `arguments`: with the object of a method, and those by keyword. `is_plain`: one argument by
// position, and no other.
void note_size_call(PyObject** callable, std::span<PyObject* const> arguments, bool is_plain);

}  // namespace backplane::python
