// From the values of a call to Python objects: the way back of convert.hpp.
//
// All functions need the interpreter lock.
#pragma once

#include "backplane/abi/value.h"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// A new reference, or nullptr with a Python error. Tensors are shared; lists come as tuples, absent values as None.
PyObject* value_object(const bp_value& value) noexcept;

}  // namespace backplane::python
