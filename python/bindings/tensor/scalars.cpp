// Reading numbers, and handing elements to Python: item() and tolist().
#include "bindings/tensor/scalars.hpp"

#include <cstring>
#include <limits>
#include <vector>

#include "backplane/autograd.hpp"
#include "backplane/device.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/half.hpp"
#include "bindings/tensor/number_hook.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bindings/tensor/tensor_slots.hpp"

namespace backplane::python {
namespace {

template <class T>
T load(const void* address) noexcept {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

// Containers (arrays of one element too) convert to float in many libraries; only scalars may stand for a number.
bool is_container(PyTypeObject* type) noexcept {
  return (type->tp_as_mapping && type->tp_as_mapping->mp_length) ||
         (type->tp_as_sequence && type->tp_as_sequence->sq_length);
}

// Python itself does not write an int of more than 4300 digits.
[[gnu::cold]] int raise_beyond(PyObject* integer, const char* fix) noexcept {
  const size_t bits = _PyLong_NumBits(integer);
  if (bits > 256)
    raise(BP_ERROR_OVERFLOW, "found an int of %zu bits, expected an int of 64 bits", bits);
  else
    raise(BP_ERROR_OVERFLOW, "found %R, expected an int of 64 bits%s", integer, fix);
  return -1;
}

int int_value(PyObject* integer, bp_value* value, const char* fix) noexcept {
  int overflow = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(integer, &overflow);
  if (number == -1 && PyErr_Occurred()) return -1;
  value->tag = BP_TAG_INT;
  value->u.i = number;
  if (!overflow) return 1;
  value->flags = BP_VALUE_UINT64;
  value->u.i = static_cast<int64_t>(PyLong_AsUnsignedLongLong(integer));
  if (!PyErr_Occurred()) return 1;
  forget_error();
  return raise_beyond(integer, fix);
}

constexpr const char* kAsFloat = "; write float(x) for the float that is nearest to it";

int complex_value(PyObject* object, bp_value* value, double* pair) noexcept {
  const Py_complex number = PyComplex_AsCComplex(object);
  if (number.real == -1.0 && PyErr_Occurred()) return -1;
  pair[0] = number.real;
  pair[1] = number.imag;
  value->tag = BP_TAG_COMPLEX;
  value->u.c = pair;
  return 1;
}

int foreign_number(PyObject* object, bp_value* value, double* pair) noexcept {
  PyTypeObject* type = Py_TYPE(object);
  if (is_container(type)) return 0;
  if (PyIndex_Check(object)) {
    PyRef integer = PyRef::steal(PyNumber_Index(object));
    return integer ? int_value(integer.get(), value, kAsFloat) : -1;
  }
  if (has_attribute(object, "__complex__") && !(type->tp_as_number && type->tp_as_number->nb_float)) {
    return complex_value(object, value, pair);
  }
  bp_dtype dtype;
  if (read_dtype(reinterpret_cast<PyObject*>(type), &dtype) > 0) {
    if (dtype == BP_BOOL) {
      const int truth = PyObject_IsTrue(object);
      value->tag = BP_TAG_BOOL;
      value->u.i = truth;
      return truth < 0 ? -1 : 1;
    }
    if (BP_DTYPE_BIT(dtype) & BP_MASK_COMPLEX) return complex_value(object, value, pair);
  }
  if (!(type->tp_as_number && type->tp_as_number->nb_float)) return 0;
  value->tag = BP_TAG_FLOAT;
  value->u.f = PyFloat_AsDouble(object);
  if (value->u.f != -1.0 || !PyErr_Occurred()) return 1;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
  forget_error();  // it says itself that it is no number (numpy.datetime64), which the caller words
  return 0;
}

}  // namespace

int read_number(PyObject* object, bp_value* value, double* pair) noexcept {
  *value = bp_value{};
  if (PyFloat_CheckExact(object)) [[likely]] {
    value->tag = BP_TAG_FLOAT;
    value->u.f = PyFloat_AS_DOUBLE(object);
    return 1;
  }
  if (PyLong_CheckExact(object)) return int_value(object, value, kAsFloat);
  note_value_read(object);
  if (PyFloat_Check(object)) {
    value->tag = BP_TAG_FLOAT;
    value->u.f = PyFloat_AS_DOUBLE(object);
    return 1;
  }
  if (PyBool_Check(object)) {
    value->tag = BP_TAG_BOOL;
    value->u.i = object == Py_True;
    return 1;
  }
  if (PyLong_Check(object)) return int_value(object, value, kAsFloat);
  if (PyComplex_Check(object)) return complex_value(object, value, pair);
  if (object == Py_None || is_tensor(object) || PyUnicode_Check(object)) return 0;
  return foreign_number(object, value, pair);
}

int read_traced_number(PyObject* number, bp_value* value) noexcept {
  *value = bp_value{};
  if (PyFloat_Check(number)) {
    value->tag = BP_TAG_FLOAT;
    value->u.f = PyFloat_AS_DOUBLE(number);
    return 1;
  }
  int overflow = 0;
  value->tag = BP_TAG_INT;
  value->u.i = PyLong_AsLongLongAndOverflow(number, &overflow);
  return overflow == 0;
}

bool read_compared(PyObject* object, bp_value* value) noexcept {
  if (!PyLong_Check(object)) return false;
  forget_error();
  *value = bp_value{};
  value->tag = BP_TAG_INT;
  value->flags = BP_VALUE_BEYOND;
  value->u.f = PyLong_AsDouble(object);
  if (!PyErr_Occurred()) return true;
  forget_error();
  value->u.f = _PyLong_Sign(object) * std::numeric_limits<double>::infinity();
  return true;
}

int read_int(PyObject* object, int64_t* value) noexcept {
  if (PyLong_CheckExact(object)) [[likely]] {
    int overflow = 0;
    *value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (!overflow) [[likely]]
      return 1;
  }
  note_value_read(object);
  if (PyBool_Check(object) || !PyIndex_Check(object)) return 0;
  PyRef integer = PyRef::steal(PyNumber_Index(object));
  if (!integer) {
    // A container whose __index__ refuses (an array of several elements) is not an int. The caller writes the error.
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    forget_error();
    return 0;
  }
  bp_value number{};
  const int read = int_value(integer.get(), &number, "");
  if (read > 0 && number.flags) return raise(BP_ERROR_VALUE, "found %R, expected an int of 64 bits", object), -1;
  *value = number.u.i;
  return read;
}

PyObject* element_to_python(bp_dtype dtype, const void* address) noexcept {
  switch (dtype) {
    case BP_BOOL:
      return PyBool_FromLong(load<uint8_t>(address));
    case BP_INT8:
      return PyLong_FromLong(load<int8_t>(address));
    case BP_INT16:
      return PyLong_FromLong(load<int16_t>(address));
    case BP_INT32:
      return PyLong_FromLong(load<int32_t>(address));
    case BP_INT64:
      return PyLong_FromLongLong(load<int64_t>(address));
    case BP_UINT8:
      return PyLong_FromLong(load<uint8_t>(address));
    case BP_UINT16:
      return PyLong_FromLong(load<uint16_t>(address));
    case BP_UINT32:
      return PyLong_FromUnsignedLong(load<uint32_t>(address));
    case BP_UINT64:
      return PyLong_FromUnsignedLongLong(load<uint64_t>(address));
    case BP_FLOAT16:
      return PyFloat_FromDouble(half_to_double(load<uint16_t>(address)));
    case BP_BFLOAT16:
      return PyFloat_FromDouble(bfloat_to_double(load<uint16_t>(address)));
    case BP_FLOAT32:
      return PyFloat_FromDouble(load<float>(address));
    case BP_FLOAT64:
      return PyFloat_FromDouble(load<double>(address));
    case BP_COMPLEX64: {
      const auto* parts = static_cast<const char*>(address);
      return PyComplex_FromDoubles(load<float>(parts), load<float>(parts + sizeof(float)));
    }
    case BP_COMPLEX128: {
      const auto* parts = static_cast<const char*>(address);
      return PyComplex_FromDoubles(load<double>(parts), load<double>(parts + sizeof(double)));
    }
    default:
      return raise(BP_ERROR_INTERNAL, "dtype %d is not of this version", int{dtype});
  }
}

Tensor plain_tensor(bp_tensor* tensor, const char* who) {
  Tensor shared = Tensor::share(tensor);
  return (tensor->flags & BP_TENSOR_WRAPPER) || every_call_taken() ? plain_value(shared, who) : shared;
}

Tensor readable_tensor(bp_tensor* tensor, const char* who) {
  const char* transform = differentiated_by(Tensor::share(tensor));
  BP_CHECK(!transform, VALUE, who, ": found a tensor inside ", transform,
           ", whose derivative would be lost. Fix: use backplane.stop_gradient(x) if it is a constant");
  return plain_tensor(tensor, who);
}

Tensor exportable_tensor(bp_tensor* tensor, const char* who) {
  Tensor plain = readable_tensor(tensor, who);
  if (!requires_grad(plain) || !grad_enabled()) return plain;
  const std::string op = node_name(plain);
  detail::fail(BP_ERROR_VALUE, who, ": found a tensor that requires a gradient",
               op.empty() ? op : " (made by " + op + ")", ", which the other side would lose; use ",
               plain.get() == tensor ? "x.detach() first" : "backplane.stop_gradient(x) first");
}

namespace {
thread_local uint64_t elements_taken = 0;
}

uint64_t differentiated_elements() noexcept { return elements_taken; }

PyObject* single_element(bp_tensor* tensor, const char* op) noexcept {
  const auto size = static_cast<uint64_t>(dtype_size(tensor->dtype));
  if (tensor->nbytes != size) {
    PyRef shape = PyRef::steal(shape_tuple(tensor->dl.shape, tensor->dl.ndim));
    return shape
               ? raise(BP_ERROR_VALUE, "%s: found a tensor of shape %R, expected one element; index or reduce it first",
                       op, shape.get())
               : nullptr;
  }
  alignas(16) unsigned char element[16];
  return guarded([&] {
    const Tensor plain = plain_tensor(tensor, op);
    if ((tensor->flags & BP_TENSOR_WRAPPER) && differentiated_by(Tensor::share(tensor))) ++elements_taken;
    read_elements(plain, element);
    return element_to_python(tensor->dtype, element);
  });
}

// item() of one element; item(i) in row-major order; item(i, j) or item((i, j)) by its position.
PyObject* tensor_item(PyObject* self, PyObject* const* args, Py_ssize_t n_args) {
  if (n_args == 0) [[likely]]
    return single_element(handle_of(self), "item");
  const bool in_order = n_args == 1 && !PyTuple_Check(args[0]);
  const PyRef of = in_order ? PyRef::steal(PyObject_CallMethod(self, "reshape", "i", -1)) : PyRef::borrow(self);
  PyRef place = PyRef::borrow(args[0]);
  if (n_args > 1) {
    place = PyRef::steal(PyTuple_New(n_args));
    for (Py_ssize_t i = 0; place && i < n_args; ++i) PyTuple_SET_ITEM(place.get(), i, Py_NewRef(args[i]));
  }
  const PyRef element = of && place ? PyRef::steal(get_item(of.get(), place.get())) : PyRef{};
  return element ? single_element(handle_of(element.get()), "item") : nullptr;
}

namespace {

PyObject* nested_list(const bp_tensor* tensor, int32_t axis, const unsigned char*& cursor, int size) {
  if (axis == tensor->dl.ndim) {
    PyObject* element = element_to_python(tensor->dtype, cursor);
    cursor += size;
    return element;
  }
  const int64_t length = tensor->dl.shape[axis];
  PyRef list = PyRef::steal(PyList_New(length));
  if (!list) return nullptr;
  for (int64_t i = 0; i < length; ++i) {
    PyObject* element = nested_list(tensor, axis + 1, cursor, size);
    if (!element) return nullptr;
    PyList_SET_ITEM(list.get(), i, element);
  }
  return list.release();
}

}  // namespace

PyObject* tensor_tolist(PyObject* self, PyObject*) {
  return guarded([&] {
    bp_tensor* tensor = handle_of(self);
    const Tensor plain = readable_tensor(tensor, "tolist");
    std::vector<unsigned char> elements(tensor->nbytes);
    {
      WithoutGil unlocked;
      to_host(plain, elements.data());
    }
    const unsigned char* cursor = elements.data();
    return nested_list(tensor, 0, cursor, dtype_size(tensor->dtype));
  });
}

}  // namespace backplane::python
