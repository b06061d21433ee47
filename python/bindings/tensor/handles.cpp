// Tensors by the address of their handle. The address is borrowed in both directions.
#include "bindings/tensor/handles.hpp"

#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

PyObject* tensor_handle(PyObject*, PyObject* tensor) {
  if (!is_tensor(tensor)) {
    return raise(BP_ERROR_TYPE, "tensor_handle: argument tensor: found a value of type %s, expected a Tensor",
                 Py_TYPE(tensor)->tp_name);
  }
  return PyLong_FromVoidPtr(handle_of(tensor));
}

PyObject* tensor_from_handle(PyObject*, PyObject* address) {
  void* handle = PyLong_AsVoidPtr(address);
  if (!handle) {
    if (PyErr_Occurred()) return nullptr;
    return raise(BP_ERROR_VALUE, "tensor_from_handle: argument address: found 0, expected the address of a handle");
  }
  return wrap_tensor(Tensor::share(static_cast<bp_tensor*>(handle)));
}

}  // namespace backplane::python
