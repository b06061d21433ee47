// Which leaves of a traced call are inputs of its graph, and when two static ones make the same graph.
//
// All functions need the interpreter lock.
#pragma once

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// Tensors and other libraries' arrays. NumPy's scalars are numbers, as they are to every op: they lend no dtype.
bool is_input(PyObject* leaf) noexcept;

// Is it an instance of a class of Python, with attributes that an equal object need not have? So are members of enums.
bool carries_attributes(PyObject* object) noexcept;

// 1: a graph that was made with `own` is that of `found` too. Numbers are the same where no op tells them apart: 0.0 is
// not -0.0, and a NaN is a NaN. Everything else is asked with ==. 0: not. -1: the comparison raised.
int same_static(PyObject* own, PyObject* found) noexcept;

}  // namespace backplane::python
