// Which instructions of Python would lose sight of a traced number (number_log.hpp): code of C reads the digits of an
// int or float without asking its type. Such a value is looked at, and a plain number takes its place; or the
// instruction is given an operand that keeps sight of it.
//
// Called before an instruction runs, with the places of its operands on the interpreter's stack. All functions need
// the interpreter lock, and leave no Python error.
#pragma once

#include <span>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// The value is looked at, wherever it goes.
void settle_number(PyObject** place);
// An operator or a comparison of two, or of one: `left` is nullptr.
void note_number_operands(PyObject** left, PyObject** right);
// container[key], also where something is stored there.
void note_number_key(PyObject* container, PyObject** key);
// value in container.
void note_number_search(PyObject** value, PyObject** container);
// A value that is stored in container[key], or as an attribute of an object.
void note_number_item(PyObject* container, PyObject** value);
void note_number_attribute(PyObject* object, PyObject* name, PyObject** value);
// `callable`: its place; `arguments`: with the object of a method, and those by keyword. `is_plain`: all by position.
// False: what Python code returns to the callable is not seen.
bool note_number_call(PyObject** callable, std::span<PyObject*> arguments, bool is_plain);

}  // namespace backplane::python
