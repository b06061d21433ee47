// asarray: which way in an object takes (buffer protocol, DLPack, sequence), then dtype, device and copy as asked.
//
// Memory is shared where dtype, device and layout allow; a shared buffer is held until the tensor's storage dies.
#include "bindings/tensor/asarray.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "backplane/device.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/tensor/dlpack.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/named_dims.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/sequence.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

struct BufferView {
  Py_buffer view;
  ~BufferView() { PyBuffer_Release(&view); }
};

void release_view(void* owner) {
  if (interpreter_gone()) return;
  WithGil locked;
  delete static_cast<BufferView*>(owner);
}

bp_dtype integer_of(Py_ssize_t itemsize, bool is_signed) {
  switch (itemsize) {
    case 1:
      return is_signed ? BP_INT8 : BP_UINT8;
    case 2:
      return is_signed ? BP_INT16 : BP_UINT16;
    case 4:
      return is_signed ? BP_INT32 : BP_UINT32;
    case 8:
      return is_signed ? BP_INT64 : BP_UINT64;
    default:
      return BP_DTYPE_NONE;
  }
}

// The struct module's format (PEP 3118) as a dtype; BP_DTYPE_NONE for foreign byte order, records and text.
bp_dtype dtype_of_format(const char* format, Py_ssize_t itemsize) {
  if (!format) return BP_UINT8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (std::strcmp(format, "Zf") == 0) return BP_COMPLEX64;
  if (std::strcmp(format, "Zd") == 0) return BP_COMPLEX128;
  if (std::strlen(format) != 1) return BP_DTYPE_NONE;
  if (std::strchr("bhilqn", *format)) return integer_of(itemsize, true);
  if (std::strchr("BHILQN", *format)) return integer_of(itemsize, false);
  switch (*format) {
    case '?':
      return BP_BOOL;
    case 'e':
      return BP_FLOAT16;
    case 'f':
      return BP_FLOAT32;
    case 'd':
      return BP_FLOAT64;
    default:
      return BP_DTYPE_NONE;
  }
}

// Elements that no dtype holds, by the letter of their format.
struct OtherElements {
  char code;
  const char* what;
  const char* fix;
};
constexpr OtherElements kOtherElements[] = {
    {'O', "Python objects", "give them a dtype, as in array.astype(float)"},
    {'w', "texts", "convert them, as in array.astype(float)"},
    {'s', "texts", "convert them, as in array.astype(float)"},
    {'c', "texts", "convert them, as in array.astype(float)"},
    {'T', "records", "take the fields one by one, array['name']"},
    {'g', "long doubles", "array.astype('float64'), or complex128"},
};

PyObject* raise_other_elements(const char* format) {
  const char* code = format + std::strspn(format, "<>=@!0123456789Z");
  for (const OtherElements& other : kOtherElements)
    if (*code == other.code)
      return raise(BP_ERROR_DTYPE, "asarray: found %s, expected numbers that a dtype holds. Fix: %s", other.what,
                   other.fix);
  if (*format == '>' || *format == '!')
    return raise(BP_ERROR_DTYPE,
                 "asarray: found numbers of the other byte order, expected this machine's. Fix: "
                 "array.astype(array.dtype.newbyteorder('='))");
  if (*code == 'x')
    return raise(BP_ERROR_DTYPE,
                 "asarray: found bytes without a dtype (format '%s'), expected numbers. Fix: state their dtype; "
                 "for bfloat16, which numpy.save writes in this way, array.view(ml_dtypes.bfloat16)",
                 format);
  return raise(BP_ERROR_DTYPE, "asarray: found elements of format '%s', expected numbers in this machine's byte order",
               format);
}

// Strides in bytes. Exporters of row-major memory may leave them out, as ctypes does though it is asked for them.
std::vector<int64_t> strides_of(const Py_buffer& view) {
  if (view.strides) return {view.strides, view.strides + view.ndim};
  std::vector<int64_t> strides(static_cast<size_t>(view.ndim), view.itemsize);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * view.shape[i];
  return strides;
}

// Strides in whole elements, not negative, at an aligned address: what a tensor can point to.
bool can_share(const Py_buffer& view, const std::vector<int64_t>& strides) {
  if (reinterpret_cast<uintptr_t>(view.buf) % static_cast<uintptr_t>(view.itemsize > 8 ? 8 : view.itemsize))
    return false;
  return std::all_of(strides.begin(), strides.end(),
                     [&](int64_t stride) { return stride >= 0 && stride % view.itemsize == 0; });
}

PyObject* copied_buffer(Py_buffer& view, bp_dtype dtype, Shape shape, bool may_copy) {
  BP_CHECK(may_copy, VALUE, "asarray: argument copy: found False, but ",
           dtype == BP_BOOL ? "bools other than the bytes 0 and 1, " : "",
           "negative or fractional strides, or an unaligned address need a copy");
  std::vector<char> elements(static_cast<size_t>(view.len));
  if (PyBuffer_ToContiguous(elements.data(), &view, view.len, 'C') < 0) return nullptr;
  return wrap_tensor(from_host(elements.data(), shape, {}, dtype, parse_device("cpu")));
}

// `bits_of`: the dtype whose bits the buffer's numbers are, where its format cannot say so.
PyObject* tensor_of_buffer(PyObject* object, bool may_copy, bp_dtype bits_of = BP_DTYPE_NONE) {
  auto held = std::make_unique<BufferView>();
  if (PyObject_GetBuffer(object, &held->view, PyBUF_RECORDS_RO) < 0) {
    held->view.obj = nullptr;
    return nullptr;
  }
  Py_buffer& view = held->view;
  // NumPy's dates give their bytes so, without an order of bytes in the format, which ctypes always gives.
  const bool is_marked = view.format && std::strchr("<>=@", *view.format);
  if (view.ndim && (!view.shape || (!view.strides && !is_marked)))
    return raise(BP_ERROR_TYPE, "asarray: found a value of type %s, expected numbers", Py_TYPE(object)->tp_name);
  const bp_dtype dtype = bits_of == BP_DTYPE_NONE ? dtype_of_format(view.format, view.itemsize) : bits_of;
  if (dtype == BP_DTYPE_NONE || view.itemsize != dtype_size(dtype)) return raise_other_elements(view.format);
  std::vector<int64_t> shape(view.shape, view.shape + view.ndim);
  std::vector<int64_t> strides = strides_of(view);
  if (!can_share(view, strides)) return copied_buffer(view, dtype, shape, may_copy);
  for (int64_t& stride : strides) stride /= view.itemsize;
  if (dtype == BP_BOOL && !are_bools(view.buf, shape, strides)) return copied_buffer(view, dtype, shape, may_copy);
  Tensor tensor = wrap_host(view.buf, shape, strides, dtype, held.get(), release_view, view.readonly != 0);
  held.release();
  return wrap_tensor(std::move(tensor));
}

bool is_plain_number(PyObject* object) {
  return PyFloat_CheckExact(object) || PyLong_Check(object) || PyComplex_CheckExact(object);
}

// A number of another library, which must fit the dtype that is asked for as Python's must.
bool is_foreign_number(PyObject* object) {
  bp_value value{};
  double pair[2];
  const int read = read_number(object, &value, pair);
  if (read < 0) forget_error();
  return read > 0;
}

// The bits of an array or a number of bfloat16, which NumPy has from ml_dtypes: no buffer and no DLPack of NumPy's
// describes it. Null for other objects.
PyRef bfloat16_bits(PyObject* object) {
  const PyRef dtype = PyRef::steal(PyObject_GetAttrString(object, "dtype"));
  const PyRef name = PyRef::steal(dtype ? PyObject_GetAttrString(dtype.get(), "name") : nullptr);
  const bool found = name && PyUnicode_Check(name.get()) && !PyUnicode_CompareWithASCIIString(name.get(), "bfloat16");
  PyRef bits = PyRef::steal(found ? PyObject_CallMethod(object, "view", "s", "uint16") : nullptr);
  forget_error();
  return bits;
}

// NumPy's dates, and numbers of other libraries, have a dtype, but no buffer. Takes the error over.
PyObject* raise_no_buffer(PyObject* array, PyObject* type, PyObject* error, PyObject* trace) {
  forget_error();  // of the other way
  PyErr_NormalizeException(&type, &error, &trace);
  const PyRef dtype = PyRef::steal(PyObject_GetAttrString(array, "dtype"));
  const PyRef kind = PyRef::steal(dtype ? PyObject_GetAttrString(dtype.get(), "kind") : nullptr);
  forget_error();
  const bool is_date = kind && PyUnicode_Check(kind.get()) && PyUnicode_CompareWithASCIIString(kind.get(), "V");
  if (dtype)
    raise(BP_ERROR_TYPE,
          "asarray: found a value of type %s and dtype %S, expected numbers. Fix: convert it first, as in "
          "array.astype('%s') (%S)",
          Py_TYPE(array)->tp_name, dtype.get(), is_date ? "int64" : "float32", error);
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
  return nullptr;
}

// Does it say of some elements that they have no value? NumPy's plain arrays are not asked.
bool masks_elements(PyObject* object) {
  if (std::strcmp(Py_TYPE(object)->tp_name, "numpy.ndarray") == 0) return false;
  const PyRef mask = PyRef::steal(PyObject_GetAttrString(object, "mask"));
  const PyRef any = PyRef::steal(mask ? PyObject_CallMethod(mask.get(), "any", nullptr) : nullptr);
  forget_error();  // no mask, or a method of that name
  return any && PyObject_IsTrue(any.get()) == 1;
}

// Some exporters have a buffer in principle only: DLPack is the other way in, and for NumPy's bfloat16 its bits. Where
// these fail too, the error of the first way stands.
PyObject* tensor_of_refused_buffer(PyObject* object, bool may_copy) {
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  const bool other_way = has_attribute(object, "__dlpack__");
  PyObject* tensor = other_way ? import_dlpack(object, may_copy ? Py_None : Py_False) : nullptr;
  if (!tensor) {
    forget_error();
    if (const PyRef bits = bfloat16_bits(object)) tensor = tensor_of_buffer(bits.get(), may_copy, BP_BFLOAT16);
  }
  if (!tensor) {
    if (PyErr_GivenExceptionMatches(type, PyExc_ValueError) && has_attribute(object, "dtype"))
      return raise_no_buffer(object, type, error, trace);
    return PyErr_Restore(type, error, trace), nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
  return tensor;
}

PyObject* tensor_of_object(PyObject* object, Numbers& numbers, bool may_copy) {
  if (is_tensor(object)) return Py_NewRef(object);
  if (is_plain_number(object) || PyList_Check(object) || PyTuple_Check(object) ||
      (numbers.dtype != BP_DTYPE_NONE && is_foreign_number(object)))
    return tensor_of_sequence(object, numbers);
  if (masks_elements(object))
    return raise(BP_ERROR_VALUE,
                 "asarray: found a masked array, whose mask would be lost, expected an array without masked elements. "
                 "Fix: array.filled(value), or array.compressed()");
  if (PyObject_CheckBuffer(object)) {
    PyObject* tensor = tensor_of_buffer(object, may_copy);
    return tensor ? tensor : tensor_of_refused_buffer(object, may_copy);
  }
  if (has_attribute(object, "__dlpack__")) return import_dlpack(object, may_copy ? Py_None : Py_False);
  if (has_attribute(object, "__array__")) {
    PyRef array = PyRef::steal(PyObject_CallMethod(object, "__array__", nullptr));
    return array ? tensor_of_buffer(array.get(), may_copy) : nullptr;
  }
  if (has_attribute(object, "__array_interface__")) {  // as images of Pillow have, which are no buffers
    const PyRef numpy = imported_module("numpy");
    PyRef array = PyRef::steal(numpy ? PyObject_CallMethod(numpy.get(), "asarray", "O", object) : nullptr);
    return array ? tensor_of_buffer(array.get(), may_copy) : nullptr;
  }
  return tensor_of_sequence(object, numbers);
}

struct Wishes {
  bp_dtype dtype = BP_DTYPE_NONE;
  bp_device device{};
  bool has_device = false;
  bool copy = false;
  bool may_copy = true;
  bool row_major = false;
};

// NumPy's order: None, 'K' and 'A' leave memory as it lies.
bool read_order(PyObject* order, Wishes* wishes) {
  const auto is = [&](const char* word) {
    return PyUnicode_Check(order) && PyUnicode_CompareWithASCIIString(order, word) == 0;
  };
  wishes->row_major = is("C");
  if (wishes->row_major || order == Py_None || is("K") || is("A")) return true;
  raise(BP_ERROR_VALUE,
        "asarray: argument order: found %R, expected 'C', 'K' or 'A'; leave it out, because a tensor's values do not "
        "depend on "
        "their order in memory",
        order);
  return false;
}

bool read_wishes(PyObject* dtype, PyObject* device, PyObject* copy, Wishes* wishes) {
  const int read_type = dtype == Py_None ? 1 : read_dtype(dtype, &wishes->dtype);
  if (read_type == 0)
    raise(BP_ERROR_TYPE, "asarray: argument dtype: found a value of type %s, expected a dtype",
          Py_TYPE(dtype)->tp_name);
  if (read_type != 1) return false;
  wishes->has_device = device != Py_None;
  const int read_place = device == Py_None ? 1 : read_device(device, &wishes->device);
  if (read_place == 0)
    raise(BP_ERROR_TYPE, "asarray: argument device: found a value of type %s, expected a device",
          Py_TYPE(device)->tp_name);
  if (read_place != 1) return false;
  wishes->copy = copy == Py_True;
  wishes->may_copy = copy != Py_False;
  return true;
}

bool same_place(const Tensor& tensor, bp_device device) {
  return tensor.device().backend == device.backend && tensor.device().ordinal == device.ordinal;
}

bool is_complex(bp_dtype dtype) { return (BP_DTYPE_BIT(dtype) & BP_MASK_COMPLEX) != 0; }

bool is_as_wished(const Tensor& tensor, const Wishes& wishes, bool fresh) {
  return (wishes.dtype == BP_DTYPE_NONE || wishes.dtype == tensor.dtype()) &&
         (!wishes.has_device || same_place(tensor, wishes.device)) && (!wishes.copy || fresh) &&
         (!wishes.row_major || tensor.is_contiguous());
}

// The tensor in the dtype and on the device that were asked for; throws Error.
Tensor as_wished(Tensor tensor, const Wishes& wishes, bool fresh) {
  const bool cast = wishes.dtype != BP_DTYPE_NONE && wishes.dtype != tensor.dtype();
  const bool move = wishes.has_device && !same_place(tensor, wishes.device);
  const bool copy = (wishes.copy && !fresh) || (wishes.row_major && !tensor.is_contiguous());
  BP_CHECK(wishes.may_copy || fresh || (!cast && !move && !copy), VALUE,
           "asarray: argument copy: found False, but this dtype, device or order needs a copy");
  BP_CHECK(!cast || !is_complex(tensor.dtype()) || is_complex(wishes.dtype) || wishes.dtype == BP_BOOL, DTYPE,
           "asarray: found complex elements, which ", dtype_name(wishes.dtype),
           " does not hold; take real(x) first, or use astype");
  if (cast) tensor = call(op_of(Slot::Cast), {value(tensor), dtype_value(wishes.dtype)});
  if (move) return to_device(tensor, wishes.device);
  return copy && !cast ? call(op_of(Slot::Copy), {value(tensor)}) : tensor;
}

// Made of numbers inside a transform: the transform's own, so that its values may be written into it. Not of integers,
// which are read as indices and sizes, nor in a trace, for which it is a constant.
bool is_made_inside(const Tensor& tensor, const Numbers& numbers) {
  constexpr uint32_t kInexact = BP_MASK_FLOATING | BP_MASK_COMPLEX;
  return numbers.fresh && !numbers.of_tensors && (BP_DTYPE_BIT(tensor.dtype()) & kInexact) && transforms_active() &&
         !every_call_taken();
}

}  // namespace

bool is_foreign_array(PyObject* object) noexcept {
  if (PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object)) return false;
  Py_buffer view;
  if (PyObject_CheckBuffer(object) && PyObject_GetBuffer(object, &view, PyBUF_RECORDS_RO) == 0) {
    const bool bytes_of_a_date = view.ndim && !view.strides;
    PyBuffer_Release(&view);
    return !bytes_of_a_date;
  }
  forget_error();  // an array whose elements no buffer describes
  return PyObject_CheckBuffer(object) || has_attribute(object, "__dlpack__") || has_attribute(object, "__array__");
}

bool stands_for_tensor(PyObject* array) noexcept { return is_foreign_array(array) && !has_attribute(array, "mask"); }

PyObject* tensor_of_data(PyObject* object, bp_dtype dtype) noexcept {
  return guarded([&] {
    Numbers numbers{.assigned = true, .dtype = dtype};
    return tensor_of_object(object, numbers, true);
  });
}

PyObject* asarray_object(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"", "dtype", "device", "copy", "order", nullptr};
  PyObject *object = nullptr, *dtype = Py_None, *device = Py_None, *copy = Py_None, *order = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$OOO:asarray", const_cast<char**>(keywords), &object, &dtype,
                                   &device, &copy, &order)) {
    return nullptr;
  }
  Wishes wishes;
  if (!read_wishes(dtype, device, copy, &wishes) || !read_order(order, &wishes)) return nullptr;
  if (require_op(Slot::Cast) == BP_NO_OP || require_op(Slot::Copy) == BP_NO_OP) return nullptr;
  return guarded([&]() -> PyObject* {
    Numbers numbers{.dtype = wishes.dtype};
    PyRef found = PyRef::steal(tensor_of_object(object, numbers, wishes.may_copy));
    if (!found) {
      if (!has_named_dims(object)) return nullptr;
      PyErr_Clear();
      return asarray_of_named_dims(object, dtype, device, copy);
    }
    if (!wishes.has_device && !is_tensor(object) && !numbers.of_tensors) {
      wishes.has_device = true;
      wishes.device = default_device();
    }
    const Tensor before = tensor_of(found.get());
    if (is_as_wished(before, wishes, numbers.fresh) && !is_made_inside(before, numbers)) return found.release();
    Tensor after;
    {
      WithoutGil unlocked;
      after = as_wished(before, wishes, numbers.fresh);
      if (is_made_inside(after, numbers)) after = call(op_of(Slot::Copy), {value(after)});
    }
    return after.get() == before.get() ? found.release() : wrap_tensor(std::move(after));
  });
}

}  // namespace backplane::python
