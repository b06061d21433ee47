// The Op object, and calls of it: op_type.cpp makes the type, op_call.cpp runs calls. Both need the interpreter lock.
#pragma once

#include "bindings/interpreter/py_ref.hpp"
#include "bindings/ops/op_signature.hpp"

namespace backplane::python {

struct OpObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  OpHandle op;
  Variant variant;
  PyObject* name;          // as Python spells it
  OpSignature* signature;  // made by the first call that needs it, never changed
  PyTypeObject* results;   // the named tuple of several results, made likewise
};

inline OpObject* op_object(PyObject* self) { return reinterpret_cast<OpObject*>(self); }
const OpSignature* signature_of(OpObject* self);

// A new reference; NULL with a Python error. Takes no reference to `name`.
PyObject* new_op(PyTypeObject* type, OpHandle op, Variant variant, PyObject* name);

// Python: Op.__call__(self, *args: Any, **kwargs: Any) -> Any
PyObject* op_vectorcall(PyObject* callable, PyObject* const* args, size_t flagged_count, PyObject* keywords);

// A call whose objects stand under the op's arguments (borrowed, NULL where left out). NULL with a Python error.
PyObject* call_given(OpObject* self, PyObject** given, PyObject* out);

}  // namespace backplane::python
