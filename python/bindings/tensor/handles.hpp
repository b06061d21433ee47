// Tensors by the address of their handle, for bridges whose native part is a module of its own.
#pragma once

#include <Python.h>

namespace backplane::python {

PyObject* tensor_handle(PyObject*, PyObject* tensor);
PyObject* tensor_from_handle(PyObject*, PyObject* address);

}  // namespace backplane::python
