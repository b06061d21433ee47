// What an op says of itself to help(), inspect and the tools, all from its record. New references; needs the lock.
#pragma once

#include "bindings/interpreter/py_ref.hpp"
#include "bindings/ops/op_signature.hpp"

namespace backplane::python {

// "(x, axis=None, *, dtype=None, out=None)", with the first argument marked as a method's.
PyObject* op_text_signature(const OpSignature& signature) noexcept;
PyObject* op_documentation(OpHandle op, const OpSignature& signature, PyObject* name) noexcept;
// A tuple (name, keyword only, has default, default, annotation) per parameter, `out` included.
PyObject* op_parameters(const OpSignature& signature) noexcept;

// Of an op defined in Python, a dynamic shape is one for which no rule was given.
bool lacks_shape_rule(OpHandle op);
PyObject* raise_no_shape_rule(OpHandle op, PyObject* name);

}  // namespace backplane::python
