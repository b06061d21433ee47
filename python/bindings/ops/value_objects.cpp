// One case per tag of the contract.
#include "bindings/ops/value_objects.hpp"

#include "bindings/interpreter/errors.hpp"
#include "bindings/ops/generator.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

template <class Element>
PyObject* tuple_of(uint32_t count, Element element) {
  PyRef tuple = PyRef::steal(PyTuple_New(count));
  for (uint32_t i = 0; tuple && i < count; ++i) {
    PyObject* item = element(i);
    if (!item) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple.release();
}

PyObject* tensor_or_none(bp_tensor* tensor) {
  if (!tensor) Py_RETURN_NONE;
  return wrap_tensor(Tensor::share(tensor));
}

PyObject* list_object(const bp_value& value) {
  switch (value.tag) {
    case BP_TAG_INT_LIST:
      return tuple_of(value.count, [&](uint32_t i) { return PyLong_FromLongLong(value.u.ints[i]); });
    case BP_TAG_FLOAT_LIST:
      return tuple_of(value.count, [&](uint32_t i) { return PyFloat_FromDouble(value.u.floats[i]); });
    case BP_TAG_BOOL_LIST:
      return tuple_of(value.count, [&](uint32_t i) { return PyBool_FromLong(value.u.bools[i]); });
    case BP_TAG_TENSOR_LIST:
      return tuple_of(value.count, [&](uint32_t i) { return tensor_or_none(value.u.tensors[i]); });
    case BP_TAG_VALUE_LIST:
      return tuple_of(value.count, [&](uint32_t i) { return value_object(value.u.values[i]); });
    default:
      return raise(BP_ERROR_INTERNAL, "a value has the unknown tag %d", int{value.tag});
  }
}

}  // namespace

PyObject* value_object(const bp_value& value) noexcept {
  switch (value.tag) {
    case BP_TAG_ABSENT:
      Py_RETURN_NONE;
    case BP_TAG_BOOL:
      return PyBool_FromLong(value.u.i != 0);
    case BP_TAG_INT:
      if (value.flags & BP_VALUE_BEYOND) return PyLong_FromDouble(value.u.f);
      return value.flags & BP_VALUE_UINT64 ? PyLong_FromUnsignedLongLong(static_cast<uint64_t>(value.u.i))
                                           : PyLong_FromLongLong(value.u.i);
    case BP_TAG_FLOAT:
      return PyFloat_FromDouble(value.u.f);
    case BP_TAG_COMPLEX:
      return PyComplex_FromDoubles(value.u.c[0], value.u.c[1]);
    case BP_TAG_STRING:
      return PyUnicode_FromStringAndSize(value.u.s, value.count);
    case BP_TAG_DTYPE:
      return wrap_dtype(static_cast<bp_dtype>(value.u.i));
    case BP_TAG_DEVICE:
      return wrap_device(value.u.d);
    case BP_TAG_TENSOR:
      return wrap_tensor(Tensor::share(value.u.t));
    case BP_TAG_GENERATOR:
      return wrap_generator(*value.u.g);
    default:
      return list_object(value);
  }
}

}  // namespace backplane::python
