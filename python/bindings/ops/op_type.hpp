// Op: a function of the registry as a Python object, callable through vectorcall and, as an attribute of Tensor, a
// method.
#pragma once

#include "bindings/interpreter/py_ref.hpp"
#include "bindings/ops/op_signature.hpp"

namespace backplane::python {

extern PyTypeObject* g_op_type;

bool add_op_type(PyObject* module);

// Ops are equal by their handle and variant; the handle of an Op object, BP_NO_OP for anything else.
OpHandle op_handle_of(PyObject* object) noexcept;

}  // namespace backplane::python
