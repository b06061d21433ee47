// DLPack in: tensors over memory of other libraries. Out is a method of Tensor (tensor_slots.hpp).
//
// Needs the interpreter lock.
#pragma once

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// What capsules are called, by the version of the protocol, before and after they were consumed.
constexpr const char* kCapsule = "dltensor_versioned";
constexpr const char* kUsedCapsule = "used_dltensor_versioned";
constexpr const char* kOlderCapsule = "dltensor";
constexpr const char* kUsedOlderCapsule = "used_dltensor";

// from_dlpack(x, /, *, device=None, copy=None), with CPython's METH_VARARGS | METH_KEYWORDS convention.
PyObject* from_dlpack_object(PyObject* module, PyObject* args, PyObject* kwargs);

// A new tensor over what object.__dlpack__() exports; nullptr with a Python error.
PyObject* import_dlpack(PyObject* object, PyObject* copy) noexcept;

}  // namespace backplane::python
