// Values of PyTorch's stack as Python objects of Backplane, and back.
#include "python_values.hpp"

#include <ATen/core/List.h>
#include <ATen/core/stack.h>

namespace backplane_torch {

namespace {

Object checked(PyObject* made);

PyObject *g_handle_of, *g_from_handle, *g_dtypes_by_number, *g_refusals;  // owned for the life of the process

Object checked(PyObject* made) {
  if (!made) throw_python_error("backplane.torch");
  return Object(made);
}

Object none() { return Object(Py_NewRef(Py_None)); }

Object number_object(const c10::Scalar& number) {
  if (number.isBoolean()) return checked(PyBool_FromLong(number.toBool()));
  if (number.isComplex()) {
    const auto value = number.toComplexDouble();
    return checked(PyComplex_FromDoubles(value.real(), value.imag()));
  }
  if (number.isFloatingPoint()) return checked(PyFloat_FromDouble(number.toDouble()));
  if (number.type() == c10::ScalarType::UInt64) return checked(PyLong_FromUnsignedLongLong(number.toUInt64()));
  return checked(PyLong_FromLongLong(number.toLong()));
}

Object operand_object(const at::Tensor& x, bp_device device) {
  if (!x.defined()) return none();
  if (x.unsafeGetTensorImpl()->is_wrapped_number()) return number_object(x.item());
  return tensor_object(operand_of(x, device));
}

// Index tensors may lie on the CPU.
Object list_element(const c10::IValue& element, bp_device device) {
  if (!element.isTensor() || !element.toTensor().defined() || !element.toTensor().is_cpu())
    return python_value(element, 't', device);
  const at::Tensor x = element.toTensor();
  return tensor_object(backplane::from_host(x.data_ptr(), {x.sizes().data(), x.sizes().size()},
                                            {x.strides().data(), x.strides().size()}, dtype_of(x.scalar_type()),
                                            device));
}

template <class List, class Make>
Object list_object(const List& list, Make make) {
  Object made = checked(PyList_New(static_cast<Py_ssize_t>(list.size())));
  Py_ssize_t place = 0;
  for (const auto& element : list) PyList_SET_ITEM(made.get(), place++, make(element).release());
  return made;
}

Object dtype_object(const c10::IValue& value) {
  const bp_dtype dtype = dtype_of(value.toScalarType());
  return Object(Py_NewRef(PyList_GET_ITEM(g_dtypes_by_number, dtype)));
}

bool shares_memory(const backplane::Tensor& result, const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& x = value.toTensor();
    return x.defined() && x.device().type() == kDevice && x.has_storage() &&
           view_of(x).get()->storage == result.get()->storage;
  }
  if (value.isTensorList())
    for (const at::Tensor& x : value.toTensorVector())
      if (shares_memory(result, x)) return true;
  return false;
}

at::Tensor own_tensor(PyObject* object, const torch::jit::Stack& stack, size_t first) {
  if (object == Py_None) return {};
  backplane::Tensor found = result_of(object);
  for (size_t i = first; i < stack.size(); ++i)
    if (shares_memory(found, stack[i])) return tensor_from(copied(found));
  return tensor_from(std::move(found));
}

}  // namespace

Object tensor_object(const backplane::Tensor& tensor) {
  const Object address = checked(PyLong_FromVoidPtr(tensor.get()));
  return checked(PyObject_CallOneArg(g_from_handle, address.get()));
}

bool set_python_tools(PyObject* tools) {
  return PyArg_ParseTuple(tools, "OOOO", &g_handle_of, &g_from_handle, &g_dtypes_by_number, &g_refusals) &&
         (Py_INCREF(g_handle_of), Py_INCREF(g_from_handle), Py_INCREF(g_dtypes_by_number), Py_INCREF(g_refusals), true);
}

Object python_value(const c10::IValue& value, char kind, bp_device device) {
  if (kind == 'n' || value.isNone()) return none();
  if (kind == 'd') return dtype_object(value);
  if (value.isTensor()) return operand_object(value.toTensor(), device);
  if (value.isBool()) return checked(PyBool_FromLong(value.toBool()));
  if (value.isInt() || value.isSymInt())
    return checked(PyLong_FromLongLong(value.toSymInt().guard_int(__FILE__, __LINE__)));
  if (value.isDouble()) return checked(PyFloat_FromDouble(value.toDouble()));
  if (value.isScalar()) return number_object(value.toScalar());
  if (value.isString()) return checked(PyUnicode_FromString(value.toStringRef().c_str()));
  if (value.isTensorList())
    return list_object(value.toTensorVector(), [&](const at::Tensor& x) { return operand_object(x, device); });
  if (value.isIntList())
    return list_object(value.toIntVector(), [](int64_t i) { return checked(PyLong_FromLongLong(i)); });
  if (value.isList())
    return list_object(value.toListRef(), [&](const c10::IValue& element) { return list_element(element, device); });
  if (value.isDevice() || value.isGenerator()) return none();
  TORCH_CHECK_NOT_IMPLEMENTED(false, "backplane.torch: found an argument of type ", value.tagKind());
}

backplane::Tensor result_of(PyObject* tensor) {
  const Object address = checked(PyObject_CallOneArg(g_handle_of, tensor));
  return backplane::Tensor::share(static_cast<bp_tensor*>(PyLong_AsVoidPtr(address.get())));
}

c10::IValue torch_value(PyObject* result, const c10::TypePtr& type, const torch::jit::Stack& stack, size_t first) {
  if (type->kind() == c10::TypeKind::ListType) {
    const Object items = checked(PySequence_Fast(result, "expected a list of tensors"));
    std::vector<at::Tensor> list;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      list.push_back(own_tensor(PySequence_Fast_GET_ITEM(items.get(), i), stack, first));
    return list;
  }
  if (PyBool_Check(result)) return result == Py_True;
  if (PyLong_Check(result)) return static_cast<int64_t>(PyLong_AsLongLong(result));
  if (PyFloat_Check(result)) return PyFloat_AsDouble(result);
  if (type->kind() == c10::TypeKind::BoolType) return tensor_from(result_of(result)).item().toBool();
  return own_tensor(result, stack, first);
}

void throw_python_error(const std::string& place) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Object owned_type(type), owned_value(value), owned_trace(trace);
  const Object message(value ? PyObject_Str(value) : nullptr);
  const char* found = message ? PyUnicode_AsUTF8(message.get()) : nullptr;
  const std::string text = place + ": " + (found ? found : "unknown error");
  PyErr_Clear();
  if (type && PyErr_GivenExceptionMatches(type, PyExc_IndexError)) TORCH_CHECK_INDEX(false, text);
  if (type && PyErr_GivenExceptionMatches(type, PyExc_NotImplementedError)) TORCH_CHECK_NOT_IMPLEMENTED(false, text);
  if (type && PyErr_GivenExceptionMatches(type, PyExc_MemoryError)) TORCH_CHECK_WITH(OutOfMemoryError, false, text);
  TORCH_CHECK(false, text);
}

bool take_refusal() {
  if (!PyErr_ExceptionMatches(g_refusals)) return false;
  PyErr_Clear();
  return true;
}

}  // namespace backplane_torch
