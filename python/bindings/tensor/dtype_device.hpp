// The Python types DType (one object per dtype) and Device, and the reading of both from what users write.
//
// All functions need the interpreter lock. Readers return 1 where `object` was read, 0 where it is not of the kind
// (no Python error set), and -1 with a Python error.
#pragma once

#include "backplane/abi/value.h"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

bool add_dtype_and_device(PyObject* module);

PyObject* wrap_dtype(bp_dtype dtype) noexcept;     // a new reference
PyObject* wrap_device(bp_device device) noexcept;  // a new reference

// A DType, its name, bool, int, float, complex or the word, NumPy's code ('<f4'), or what carries a dtype's name:
// NumPy's dtypes and scalar types. An error of a text that names none, and of another order of bytes than this
// machine's.
int read_dtype(PyObject* object, bp_dtype* dtype) noexcept;
// A Device or its name.
int read_device(PyObject* object, bp_device* device) noexcept;

// Host memory as DLPack's device code states it: the interpreter may read the elements directly.
inline bool in_host_memory(const bp_tensor* tensor) noexcept { return tensor->dl.device.device_type == kDLCPU; }

}  // namespace backplane::python
