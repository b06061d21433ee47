// Objects of PyTorch's Python.
#include "torch_objects.hpp"

#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

namespace backplane_torch {

void throw_pending() {
  python_error raised;
  raised.persist();
  throw raised;
}

Object owned(PyObject* made) {
  if (!made) throw_pending();
  return Object(made);
}

Object torch_object(const c10::IValue& value, char kind) {
  if (value.isNone()) return Object(Py_NewRef(Py_None));
  if (value.isTensor())
    return value.toTensor().defined() ? owned(THPVariable_Wrap(value.toTensor())) : Object(Py_NewRef(Py_None));
  if (kind == 'd') return Object(Py_NewRef(reinterpret_cast<PyObject*>(torch::getTHPDtype(value.toScalarType()))));
  if (value.isSymInt()) return Object(pybind11::cast(value.toSymInt()).release().ptr());
  if (value.isList()) {
    const auto elements = value.toListRef();
    Object list = owned(PyList_New(static_cast<Py_ssize_t>(elements.size())));
    for (size_t i = 0; i < elements.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), torch_object(elements[i], kind).release());
    return list;
  }
  return python_value(value, 't', {});
}

Object tensor_list_object(const std::vector<at::Tensor>& tensors) {
  Object list = owned(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), owned(THPVariable_Wrap(tensors[i])).release());
  return list;
}

std::vector<at::Tensor> tensors_of(PyObject* sequence) {
  const Object items = owned(PySequence_Fast(sequence, "expected tensors"));
  std::vector<at::Tensor> tensors;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    tensors.push_back(THPVariable_Unpack(PySequence_Fast_GET_ITEM(items.get(), i)));
  return tensors;
}

}  // namespace backplane_torch
