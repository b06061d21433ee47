// Which values are the same to a guard, and which tensors.
#include <algorithm>
#include <cstring>

#include "backplane/autograd.hpp"
#include "backplane/device.hpp"
#include "bindings/guards/guards.hpp"
#include "bindings/guards/static_values.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

bool is_plain_value(PyObject* object) noexcept {
  if (object == Py_None || PyBool_Check(object) || object == Py_Ellipsis || PyLong_CheckExact(object) ||
      PyFloat_CheckExact(object) || PyUnicode_CheckExact(object))
    return true;
  const bool is_value = PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object) ||
                        PyUnicode_Check(object) || PyBytes_Check(object) || is_numpy_scalar(object);
  return is_value && !carries_attributes(object);
}

bool same_value(PyObject* own, PyObject* found) noexcept {
  if (own == found) return true;
  if (PyTuple_CheckExact(own) && PyTuple_CheckExact(found)) {
    const Py_ssize_t size = PyTuple_GET_SIZE(own);
    if (PyTuple_GET_SIZE(found) != size) return false;
    for (Py_ssize_t i = 0; i < size; ++i)
      if (!same_value(PyTuple_GET_ITEM(own, i), PyTuple_GET_ITEM(found, i))) return false;
    return true;
  }
  if (!is_plain_value(own) || !is_plain_value(found)) return false;
  const int same = same_static(own, found);
  if (same < 0) forget_error();
  return same == 1;
}

namespace {

bool same_elements(PyObject* own, PyObject* found, int levels) {
  if (same_value(own, found)) return true;
  if (levels == 0 || Py_TYPE(own) != Py_TYPE(found)) return false;
  if (PySlice_Check(own) || PyRange_Check(own)) return PyObject_RichCompareBool(own, found, Py_EQ) == 1;
  if (PyList_CheckExact(own) || PyTuple_CheckExact(own)) {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(own);
    bool same = PySequence_Fast_GET_SIZE(found) == size;
    for (Py_ssize_t i = 0; same && i < size; ++i)
      same = same_elements(PySequence_Fast_GET_ITEM(own, i), PySequence_Fast_GET_ITEM(found, i), levels - 1);
    return same;
  }
  if (!PyDict_CheckExact(own) || PyDict_GET_SIZE(own) != PyDict_GET_SIZE(found)) return false;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(own, &at, &key, &value);) {
    PyObject* other = PyDict_GetItemWithError(found, key);
    if (!other || !same_elements(value, other, levels - 1)) return false;
  }
  return true;
}

}  // namespace

bool same_contents(PyObject* own, PyObject* found) noexcept {
  constexpr int kMostLevels = 4;
  const bool same = same_elements(own, found, kMostLevels);
  forget_error();
  return same;
}

bool TensorGuard::accepts(const Tensor& found) const {
  if (backplane::requires_grad(found) != requires_grad) return false;
  if (tensor)
    return found.get() == tensor && (!read || version_of(found) == read->version) &&
           (bytes.empty() || bytes == shared_bytes(found));
  const Shape sizes = found.shape();
  return found.dtype() == dtype && found.get()->backend == device.backend && found.get()->ordinal == device.ordinal &&
         std::equal(shape.begin(), shape.end(), sizes.begin(), sizes.end());
}

const char* TensorGuard::difference(const Tensor& found) const {
  if (backplane::requires_grad(found) != requires_grad)
    return requires_grad ? "a tensor without requires_grad" : "a tensor with requires_grad";
  return found.get() == tensor ? "other values" : "another tensor";
}

std::vector<std::byte> shared_bytes(const Tensor& tensor) {
  constexpr uint64_t kMost = 1 << 20;
  const bp_tensor* t = tensor.get();
  if (t->nbytes > kMost || !in_host_memory(t) || !(t->flags & BP_TENSOR_CONTIGUOUS)) return {};
  const auto* data = static_cast<const std::byte*>(t->dl.data) + t->dl.byte_offset;
  return {data, data + t->nbytes};
}

std::string TensorGuard::text() const {
  const PyRef sizes = PyRef::steal(shape_tuple(shape.data(), static_cast<int32_t>(shape.size())));
  return std::string(dtype_name(dtype)) + " of shape " + spelled(sizes.get()) + " on " + device_name(device);
}

}  // namespace backplane::python
