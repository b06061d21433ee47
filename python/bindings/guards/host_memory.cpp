#include "bindings/guards/host_memory.hpp"

#include <algorithm>

#include "bindings/guards/guards.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

constexpr int kMostViews = 100;  // view of view of …

template <class Size>
MemorySpan strided_span(const void* data, int ndim, const Size* shape, const Size* strides, int64_t unit,
                        int64_t item_size) {
  int64_t lowest = 0, highest = item_size;
  for (int axis = 0; axis < ndim; ++axis) {
    if (shape[axis] == 0) return {};
    const int64_t reach = (shape[axis] - 1) * strides[axis] * unit;
    (reach < 0 ? lowest : highest) += reach;
  }
  const auto* first = static_cast<const std::byte*>(data);
  return {first + lowest, first + highest};
}

// Of an array whose dtype the buffer protocol does not know: its data are contiguous, or taken for it.
MemorySpan span_of_interface(PyObject* array) {
  const PyRef size = PyRef::steal(PyObject_GetAttrString(array, "nbytes"));
  const PyRef interface = PyRef::steal(PyObject_GetAttrString(array, "__array_interface__"));
  PyObject* data = interface && PyDict_Check(interface.get()) ? PyDict_GetItemString(interface.get(), "data") : nullptr;
  if (!size || !data || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) == 0) return {};
  const auto* first = static_cast<const std::byte*>(PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0)));
  const Py_ssize_t count = PyLong_AsSsize_t(size.get());
  return first && count > 0 ? MemorySpan{first, first + count} : MemorySpan{};
}

// The object whose memory a view shows; empty: the object is not a view.
PyRef viewed_by(PyObject* object) {
  if (PyMemoryView_Check(object)) return PyRef::borrow(PyMemoryView_GET_BUFFER(object)->obj);
  PyRef base = PyRef::steal(is_numpy_array(object) ? PyObject_GetAttrString(object, "base") : nullptr);
  return base.get() == Py_None ? PyRef{} : base;
}

}  // namespace

MemorySpan memory_of(PyObject* buffer) noexcept {
  if (!has_bytes(buffer)) return {};
  Py_buffer view;
  MemorySpan span;
  if (PyObject_GetBuffer(buffer, &view, PyBUF_STRIDED_RO | PyBUF_FORMAT) == 0) {
    span = strided_span(view.buf, view.ndim, view.shape, view.strides, 1, view.itemsize);
    PyBuffer_Release(&view);
  } else {
    PyErr_Clear();
    span = span_of_interface(buffer);
  }
  forget_error();
  return span;
}

MemorySpan memory_of(const Tensor& tensor) noexcept {
  const bp_tensor* t = tensor.get();
  if ((t->flags & BP_TENSOR_WRAPPER) || !in_host_memory(t) || !t->dl.data || t->nbytes == 0) return {};
  const int64_t item_size = (int64_t{t->dl.dtype.bits} * t->dl.dtype.lanes + 7) / 8;
  const auto* first = static_cast<const std::byte*>(t->dl.data) + t->dl.byte_offset;
  return strided_span(first, t->dl.ndim, t->dl.shape, t->dl.strides, item_size, item_size);
}

PyRef buffer_owner(PyObject* buffer) {
  PyRef owner = PyRef::borrow(buffer);
  for (int steps = 0; steps < kMostViews; ++steps) {
    PyRef next = viewed_by(owner.get());
    if (!next || !has_bytes(next.get())) break;
    owner = std::move(next);
  }
  forget_error();
  return owner;
}

bool is_memory_of_tensor(PyObject* buffer) {
  PyRef at = PyRef::borrow(buffer);
  for (int steps = 0; at && steps < kMostViews; ++steps) {
    if (is_tensor(at.get())) return true;
    at = viewed_by(at.get());
  }
  forget_error();
  return false;
}

}  // namespace backplane::python
