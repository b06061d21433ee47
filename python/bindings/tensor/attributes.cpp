// Attributes and methods of Tensor that read the handle alone, and the table of those that other files bring.
#include <algorithm>
#include <numeric>
#include <utility>

#include "backplane/device.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/declared.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/size_hook.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bindings/tensor/tensor_slots.hpp"

namespace backplane::python {

PyObject* shape_tuple(const int64_t* sizes, int32_t count) noexcept {
  PyRef tuple = PyRef::steal(PyTuple_New(count));
  for (int32_t i = 0; tuple && i < count; ++i) {
    PyObject* size = PyLong_FromLongLong(sizes[i]);
    if (!size) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), i, size);
  }
  return tuple.release();
}

namespace {

int64_t element_count(const bp_tensor* tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->dl.ndim; ++i) count *= tensor->dl.shape[i];
  return count;
}

PyObject* get_shape(PyObject* self, void*) {
  const DLTensor& dl = handle_of(self)->dl;
  if (!notes_sizes(self)) return shape_tuple(dl.shape, dl.ndim);
  PyRef tuple = PyRef::steal(PyTuple_New(dl.ndim));
  for (int32_t i = 0; tuple && i < dl.ndim; ++i) {
    PyObject* size = g_size_hook.read(dl.shape[i]);
    if (!size) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), i, size);
  }
  return tuple.release();
}
PyObject* get_strides(PyObject* self, void*) {
  const bp_tensor* tensor = handle_of(self);
  int64_t bytes[64];  // as many axes as a tensor may have
  for (int32_t i = 0; i < tensor->dl.ndim; ++i) bytes[i] = tensor->dl.strides[i] * dtype_size(tensor->dtype);
  if (notes_sizes(self)) g_size_hook.lose_strides(self);
  return shape_tuple(bytes, tensor->dl.ndim);
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(handle_of(self)->dl.ndim); }

// size is NumPy's int. A call of it, as PyTorch's size() and size(dim), gives the shape or one of its sizes. The thread
// remembers the shape of the tensor whose size it read last, since a call follows its attribute at once.
PyTypeObject* g_count_type = nullptr;

struct LastSize {
  PyObject* count = nullptr;  // the number that was read; not owned, and only compared
  PyObject* shape = nullptr;  // owned where the sizes are noted, and then used instead of `sizes`
  int32_t ndim = 0;
  int64_t sizes[64] = {};
};
thread_local LastSize t_last_size;

PyObject* reads_shape(PyObject* self, PyObject* count) {
  LastSize& last = t_last_size;
  last.count = count;
  Py_CLEAR(last.shape);
  if (notes_sizes(self)) {
    last.shape = count ? get_shape(self, nullptr) : nullptr;
    if (count && !last.shape) {
      Py_DECREF(count);
      return nullptr;
    }
  } else {
    const DLTensor& dl = handle_of(self)->dl;
    last.ndim = dl.ndim;
    std::copy_n(dl.shape, dl.ndim, last.sizes);
  }
  return count;
}

}  // namespace

PyObject* call_size(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"dim", nullptr};
  PyObject* dim = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:size", const_cast<char**>(keywords), &dim)) return nullptr;
  const LastSize& last = t_last_size;
  if (last.count != self) {
    return raise(BP_ERROR_TYPE, "size: found a call of a number that was kept, expected x.size() or x.size(dim)");
  }
  const PyRef shape = last.shape ? PyRef::borrow(last.shape) : PyRef::steal(shape_tuple(last.sizes, last.ndim));
  if (!shape || dim == Py_None) return Py_XNewRef(shape.get());
  const auto ndim = static_cast<long>(PyTuple_GET_SIZE(shape.get()));
  const long axis = PyLong_AsLong(dim);
  if (axis == -1 && PyErr_Occurred()) return nullptr;
  if (axis < -ndim || axis >= ndim) {
    return raise(BP_ERROR_INDEX, "size: argument dim: found %ld, expected an axis of a tensor of %ld dimensions", axis,
                 ndim);
  }
  return Py_NewRef(PyTuple_GET_ITEM(shape.get(), axis < 0 ? axis + ndim : axis));
}

namespace {

PyObject* reduce_count(PyObject* self, PyObject*) { return Py_BuildValue("O(N)", &PyLong_Type, PyNumber_Long(self)); }

PyMethodDef count_methods[] = {{"__reduce__", reduce_count, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyType_Slot count_slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(call_size)},
    {Py_tp_methods, count_methods},
    {Py_tp_doc,
     const_cast<char*>("How many elements a tensor has: an int. Called, the shape, or the size of an axis.")},
    {0, nullptr}};
PyType_Spec count_spec = {"backplane.ElementCount", 0, 0, Py_TPFLAGS_DEFAULT, count_slots};

PyObject* get_size(PyObject* self, void*) {
  if (notes_sizes(self)) return reads_shape(self, g_size_hook.read(element_count(handle_of(self))));
  const PyRef count = PyRef::steal(PyLong_FromLongLong(element_count(handle_of(self))));
  return count ? reads_shape(self, PyObject_CallOneArg(reinterpret_cast<PyObject*>(g_count_type), count.get()))
               : nullptr;
}
PyObject* get_nbytes(PyObject* self, void*) {
  const uint64_t bytes = handle_of(self)->nbytes;
  if (notes_sizes(self)) return g_size_hook.read(static_cast<int64_t>(bytes));
  return PyLong_FromUnsignedLongLong(bytes);
}
PyObject* get_itemsize(PyObject* self, void*) { return PyLong_FromLong(dtype_size(handle_of(self)->dtype)); }
PyObject* get_dtype(PyObject* self, void*) { return wrap_dtype(handle_of(self)->dtype); }
PyObject* get_device(PyObject* self, void*) {
  return wrap_device({handle_of(self)->backend, handle_of(self)->ordinal});
}
PyObject* get_is_contiguous(PyObject* self, void*) {
  return PyBool_FromLong((handle_of(self)->flags & BP_TENSOR_CONTIGUOUS) != 0);
}

constexpr int32_t kMaxAxes = 64;  // of any tensor

// `axes`: as many as the tensor has.
PyObject* permuted(bp_tensor* tensor, const int64_t* axes) {
  const OpHandle op = require_op(Slot::Permute);
  if (op == BP_NO_OP) return nullptr;
  const bp_value args[] = {tensor_value(tensor), value(Shape(axes, static_cast<size_t>(tensor->dl.ndim)))};
  return call_to_view(op, args, 2);
}

PyObject* get_transposed(PyObject* self, void*) {
  const int32_t ndim = handle_of(self)->dl.ndim;
  int64_t axes[kMaxAxes];
  for (int32_t i = 0; i < ndim; ++i) axes[i] = ndim - 1 - i;
  return permuted(handle_of(self), axes);
}

PyObject* get_matrix_transposed(PyObject* self, void*) {
  const int32_t ndim = handle_of(self)->dl.ndim;
  if (ndim < 2) return raise(BP_ERROR_SHAPE, "mT: found a tensor of %d dimensions, expected 2 or more", int{ndim});
  int64_t axes[kMaxAxes];
  std::iota(axes, axes + ndim, 0);
  std::swap(axes[ndim - 2], axes[ndim - 1]);
  return permuted(handle_of(self), axes);
}

template <class Function>
PyCFunction method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyGetSetDef tensor_getset[] = {
    {"shape", get_shape, nullptr, "tuple[int, ...]: Sizes of the axes.", nullptr},
    {"strides", get_strides, nullptr,
     "tuple[int, ...]: Steps along the axes, in bytes, as NumPy's; stride() gives them in elements.", nullptr},
    {"ndim", get_ndim, nullptr, "int: How many axes it has.", nullptr},
    {"size", get_size, nullptr, "int: How many elements it has.", nullptr},
    {"nbytes", get_nbytes, nullptr, "int: Bytes of its elements.", nullptr},
    {"itemsize", get_itemsize, nullptr, "int: Bytes of one element.", nullptr},
    {"dtype", get_dtype, nullptr, "DType: The type of its elements.", nullptr},
    {"device", get_device, nullptr, "Device: Where its elements are.", nullptr},
    {"is_contiguous", get_is_contiguous, nullptr, "bool: Are the elements row-major without gaps?", nullptr},
    {"T", get_transposed, nullptr, "Tensor: A view with the axes in reverse order.", nullptr},
    {"mT", get_matrix_transposed, nullptr, "Tensor: A view with the last two axes exchanged.", nullptr},
    {"requires_grad", tensor_get_requires_grad, tensor_put_requires_grad,
     "bool: Are gradients wanted for it? Leaves can be set.", nullptr},
    {"grad", tensor_get_grad, tensor_put_grad, "Tensor | None: What backward() accumulated; None at first.", nullptr},
    {"is_leaf", tensor_is_leaf, nullptr, "bool: Was it made by no recorded op?", nullptr},
    {"version", tensor_version, nullptr, "int: How often its memory was changed in place.", nullptr},
    {"grad_op", tensor_node_name, nullptr, "str | None: The recorded op that made it; None for a leaf.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

constexpr Declared kItemDoc = R"(Tensor.item(self, *position: int) -> Any
--

The only element, as a Python number. With one int, the element at that index in row-major order. With one int per axis, the
element at that position.)";

constexpr Declared kToListDoc = R"(Tensor.tolist(self) -> Any
--

The elements as nested lists of Python numbers.)";

constexpr Declared kDetachDoc = R"(Tensor.detach(self) -> Tensor
--

A tensor that shares the memory but has no history. Inside transforms, a copy that is a constant.)";

constexpr Declared kBackwardDoc =
    R"(Tensor.backward(self, gradient: Tensor | None = None, retain_graph: bool = False, create_graph: bool = False) -> None
--

Adds the gradients of this tensor to the grad of every leaf that it was computed from.
gradient: the initial cotangent. It defaults to ones for a tensor of one element.)";

constexpr Declared kRequiresGradDoc = R"(Tensor.requires_grad_(self, wanted: bool = True) -> Tensor
--

Sets requires_grad and returns the tensor.)";

constexpr Declared kDlpackDoc =
    R"(Tensor.__dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any
--

A DLPack capsule over the same memory.)";

constexpr Declared kDlpackDeviceDoc = R"(Tensor.__dlpack_device__(self) -> tuple[int, int]
--

The pair (DLPack device type, ordinal).)";

PyMethodDef tensor_methods[] = {
    {"item", method(tensor_item), METH_FASTCALL, kItemDoc.text},
    {"tolist", tensor_tolist, METH_NOARGS, kToListDoc.text},
    {"detach", tensor_detach, METH_NOARGS, kDetachDoc.text},
    {"backward", method(tensor_backward), METH_VARARGS | METH_KEYWORDS, kBackwardDoc.text},
    {"requires_grad_", method(tensor_set_requires_grad), METH_VARARGS | METH_KEYWORDS, kRequiresGradDoc.text},
    {"__dlpack__", method(tensor_dlpack), METH_VARARGS | METH_KEYWORDS, kDlpackDoc.text},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, kDlpackDeviceDoc.text},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_count_type() noexcept {
  const PyRef bases = PyRef::steal(PyTuple_Pack(1, &PyLong_Type));
  g_count_type = bases ? reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&count_spec, bases.get())) : nullptr;
  return g_count_type != nullptr;
}

void append_attribute_slots(std::vector<PyType_Slot>& slots) {
  slots.push_back({Py_tp_getset, tensor_getset});
  slots.push_back({Py_tp_methods, tensor_methods});
}

}  // namespace backplane::python
