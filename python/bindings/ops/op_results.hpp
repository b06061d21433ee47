// What a call of an op gives to Python: a tensor, a list of tensors, or a named tuple of several results.
#pragma once

#include "bindings/ops/op_signature.hpp"

namespace backplane::python {

// Takes over what the slot owns.
PyObject* wrap_result(bp_value& value);
// A class of named tuples, for the results of the op of this name. Its fields are the names of the results.
PyTypeObject* new_results_type(PyObject* op, const OpSignature& signature);

}  // namespace backplane::python
