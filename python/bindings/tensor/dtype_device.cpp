// DType and Device: small immutable objects. DTypes live as long as the process; a Device owns nothing.
#include "bindings/tensor/dtype_device.hpp"

#include <structmember.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "backplane/device.hpp"
#include "backplane/placement.hpp"
#include "bindings/interpreter/declared.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/default_float.hpp"

namespace backplane::python {
namespace {

struct DTypeObject {
  PyObject_HEAD bp_dtype code;
  Py_hash_t hash;  // of the name, since a dtype equals its name
};
struct DeviceObject {
  PyObject_HEAD bp_device device;
};

PyTypeObject* g_dtype_type = nullptr;
PyTypeObject* g_device_type = nullptr;
PyObject* g_dtypes[BP_DTYPE_COUNT] = {};

bp_dtype code_of(PyObject* self) { return reinterpret_cast<DTypeObject*>(self)->code; }
bp_device device_of(PyObject* self) { return reinterpret_cast<DeviceObject*>(self)->device; }

PyObject* dtype_repr(PyObject* self) { return PyUnicode_FromFormat("backplane.%s", dtype_name(code_of(self))); }
PyObject* dtype_get_name(PyObject* self, void*) { return PyUnicode_FromString(dtype_name(code_of(self))); }
PyObject* dtype_get_itemsize(PyObject* self, void*) { return PyLong_FromLong(dtype_size(code_of(self))); }

PyObject* dtype_get_kind(PyObject* self, void*) {
  const bp_dtype_mask bit = BP_DTYPE_BIT(code_of(self));
  const char* kind = bit & BP_MASK_BOOL       ? "bool"
                     : bit & BP_MASK_SIGNED   ? "signed integer"
                     : bit & BP_MASK_UNSIGNED ? "unsigned integer"
                     : bit & BP_MASK_FLOATING ? "real floating"
                                              : "complex floating";
  return PyUnicode_FromString(kind);
}

// Python: DType.__eq__(self, other: object, /) -> bool
// Equal to what asarray would take for it: its name, Python's and NumPy's types.
PyObject* dtype_compare(PyObject* self, PyObject* other, int operation) {
  if (operation != Py_EQ && operation != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  bool equal = self == other;
  if (Py_TYPE(other) != g_dtype_type) {
    bp_dtype code = BP_DTYPE_NONE;
    const int read = read_dtype(other, &code);
    if (read < 0) forget_error();  // a text that names none
    if (read == 0) Py_RETURN_NOTIMPLEMENTED;
    equal = read == 1 && code == code_of(self);
  }
  return PyBool_FromLong(equal == (operation == Py_EQ));
}

// Python: DType.__hash__(self) -> int
Py_hash_t dtype_hash(PyObject* self) { return reinterpret_cast<DTypeObject*>(self)->hash; }

// Python: DType.__call__(self, value: object = 0, /) -> Tensor
// A new tensor of the value (a number, a sequence, an array or a tensor) in this dtype.
PyObject* dtype_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* value = nullptr;
  if ((kwargs && PyDict_GET_SIZE(kwargs) != 0) || !PyArg_ParseTuple(args, "|O", &value)) {
    return raise(BP_ERROR_TYPE, "%s: expected one value, a number, a sequence, an array or a tensor",
                 dtype_name(code_of(self)));
  }
  const PyRef zero = PyRef::steal(PyLong_FromLong(0));
  const PyRef position = zero ? PyRef::steal(PyTuple_Pack(1, value ? value : zero.get())) : PyRef();
  const PyRef words = PyRef::steal(Py_BuildValue("{s:O,s:O}", "dtype", self, "copy", Py_True));
  return position && words ? asarray_object(nullptr, position.get(), words.get()) : nullptr;
}

// The name under which the package has the object: pickle and copy then keep one object per dtype.
PyObject* dtype_reduce(PyObject* self, PyObject*) { return PyUnicode_FromString(dtype_name(code_of(self))); }

PyGetSetDef dtype_getset[] = {
    {"name", dtype_get_name, nullptr, "str: The name, as in the array API.", nullptr},
    {"itemsize", dtype_get_itemsize, nullptr, "int: Bytes of an element.", nullptr},
    {"kind", dtype_get_kind, nullptr,
     "str: The array API's word for its kind, such as real floating; none of NumPy's letters.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef dtype_methods[] = {{"__reduce__", dtype_reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyType_Slot dtype_slots[] = {{Py_tp_repr, reinterpret_cast<void*>(dtype_repr)},
                             {Py_tp_call, reinterpret_cast<void*>(dtype_call)},
                             {Py_tp_getset, dtype_getset},
                             {Py_tp_methods, dtype_methods},
                             {Py_tp_richcompare, reinterpret_cast<void*>(dtype_compare)},
                             {Py_tp_hash, reinterpret_cast<void*>(dtype_hash)},
                             {Py_tp_doc, const_cast<char*>("The type of a tensor's elements.")},
                             {0, nullptr}};
PyType_Spec dtype_spec = {"backplane.DType", sizeof(DTypeObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, dtype_slots};

PyObject* device_repr(PyObject* self) {
  return guarded([&] { return PyUnicode_FromFormat("device('%s')", device_name(device_of(self)).c_str()); });
}
PyObject* device_str(PyObject* self) {
  return guarded([&] { return PyUnicode_FromString(device_name(device_of(self)).c_str()); });
}
PyObject* device_get_backend(PyObject* self, void*) {
  return guarded([&] {
    std::string name = device_name(device_of(self));
    return PyUnicode_FromString(name.substr(0, name.find(':')).c_str());
  });
}
PyObject* device_get_ordinal(PyObject* self, void*) { return PyLong_FromLong(device_of(self).ordinal); }

bool same_device(bp_device a, bp_device b) { return a.backend == b.backend && a.ordinal == b.ordinal; }

// Python: Device.__eq__(self, other: object, /) -> bool
PyObject* device_compare(PyObject* self, PyObject* other, int operation) {
  if (operation != Py_EQ && operation != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  bool equal = false;
  if (Py_TYPE(other) == g_device_type) {
    equal = same_device(device_of(self), device_of(other));
  } else if (PyUnicode_Check(other)) {
    PyRef name = PyRef::steal(device_str(self));
    if (!name) return nullptr;
    equal = PyUnicode_Compare(name.get(), other) == 0;
  } else {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong(equal == (operation == Py_EQ));
}

// Python: Device.__hash__(self) -> int
// Equal to the hash of the name, since a device equals its name.
Py_hash_t device_hash(PyObject* self) {
  PyRef name = PyRef::steal(device_str(self));
  return name ? PyObject_Hash(name.get()) : -1;
}

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"name", nullptr};
  PyObject* name = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:device", const_cast<char**>(keywords), &name)) return nullptr;
  bp_device device;
  const int read = read_device(name, &device);
  if (read == 0) return raise(BP_ERROR_TYPE, "device: argument name: found %s, expected a str", Py_TYPE(name)->tp_name);
  return read < 0 ? nullptr : wrap_device(device);
}

PyObject* device_reduce(PyObject* self, PyObject*) {
  PyRef name = PyRef::steal(device_str(self));
  return name ? Py_BuildValue("O(O)", g_device_type, name.get()) : nullptr;
}

constexpr Declared kDeviceDoc = R"(Device(name: str)
--

A device by name: 'cpu', 'cuda:1'.)";

PyGetSetDef device_getset[] = {{"backend", device_get_backend, nullptr, "str: The name of its backend.", nullptr},
                               {"ordinal", device_get_ordinal, nullptr, "int: Its number within the backend.", nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
// Python: Device.__enter__(self) -> Device
PyObject* device_enter(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const bp_device device = device_of(self);
    check_device(device);
    return begin_block(self, Setting::kDevice, value_of_device(device)) ? Py_NewRef(self) : nullptr;
  });
}

// Python: Device.__exit__(self, *failure: object) -> None
PyObject* device_exit(PyObject* self, PyObject*) {
  if (!leave_block(self)) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, nullptr},
    {"__enter__", device_enter, METH_NOARGS, "Makes it the default device until the block's end, in this context."},
    {"__exit__", device_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot device_slots[] = {{Py_tp_new, reinterpret_cast<void*>(device_new)},
                              {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
                              {Py_tp_str, reinterpret_cast<void*>(device_str)},
                              {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
                              {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
                              {Py_tp_getset, device_getset},
                              {Py_tp_methods, device_methods},
                              {Py_tp_doc, const_cast<char*>(kDeviceDoc.text)},
                              {0, nullptr}};
PyType_Spec device_spec = {"backplane.Device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, device_slots};

int dtype_by_name(const char* name, bp_dtype* dtype) noexcept {
  for (bp_dtype code = 0; code < BP_DTYPE_COUNT; ++code) {
    if (std::strcmp(name, dtype_name(code)) == 0) {
      *dtype = code;
      return 1;
    }
  }
  return 0;
}

// The last part of a class's name, without the underscore that NumPy adds to built-in names (numpy.bool_).
int dtype_by_class(PyTypeObject* type, bp_dtype* dtype) noexcept {
  const char* dot = std::strrchr(type->tp_name, '.');
  std::string name = dot ? dot + 1 : type->tp_name;
  if (!name.empty() && name.back() == '_') name.pop_back();
  return dtype_by_name(name.c_str(), dtype);
}

// What Python's own types stand for.
struct NumberType {
  PyTypeObject* type;
  bp_dtype dtype;
};
std::array<NumberType, 4> number_types() noexcept {
  return {{{&PyBool_Type, BP_BOOL},
           {&PyLong_Type, BP_INT64},
           {&PyFloat_Type, default_float()},
           {&PyComplex_Type, default_complex()}}};
}

// NumPy's codes without their order of bytes, a kind and the bytes of an element: f4.
int dtype_by_code(std::string_view code, bp_dtype* dtype) noexcept {
  constexpr std::pair<std::string_view, bp_dtype> kCodes[] = {
      {"?", BP_BOOL},     {"b1", BP_BOOL},    {"i1", BP_INT8},    {"i2", BP_INT16},     {"i4", BP_INT32},
      {"i8", BP_INT64},   {"u1", BP_UINT8},   {"u2", BP_UINT16},  {"u4", BP_UINT32},    {"u8", BP_UINT64},
      {"f2", BP_FLOAT16}, {"f4", BP_FLOAT32}, {"f8", BP_FLOAT64}, {"c8", BP_COMPLEX64}, {"c16", BP_COMPLEX128}};
  for (const auto& [word, its] : kCodes) {
    if (word != code) continue;
    *dtype = its;
    return 1;
  }
  return 0;
}

int raise_swapped(bp_dtype dtype) noexcept {
  const char* name = dtype_name(dtype);
  raise(BP_ERROR_DTYPE, "dtype: found %s in the other byte order, expected this machine's byte order. Fix: use '%s'",
        name, name);
  return -1;
}

int dtype_by_text(const char* text, bp_dtype* dtype) noexcept {
  if (dtype_by_name(text, dtype)) return 1;
  for (const NumberType& number : number_types()) {
    if (std::strcmp(text, number.type->tp_name) != 0) continue;
    *dtype = number.dtype;
    return 1;
  }
  const bool has_order = *text && std::strchr("<>=|", *text);
  if (dtype_by_code(text + has_order, dtype)) return *text == '>' && dtype_size(*dtype) > 1 ? raise_swapped(*dtype) : 1;
  raise(BP_ERROR_DTYPE,
        "dtype: found '%s', expected a name such as 'float32' or 'int64', or a code of NumPy's such as 'f4'", text);
  return -1;
}

// Of an object with a name, NumPy's dtypes: has it the other order of bytes?
bool is_swapped(PyObject* object) noexcept {
  const PyRef native = PyRef::steal(PyObject_GetAttrString(object, "isnative"));
  forget_error();
  return native.get() == Py_False;
}

}  // namespace

bool add_dtype_and_device(PyObject* module) {
  g_dtype_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&dtype_spec));
  g_device_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&device_spec));
  if (!g_dtype_type || !g_device_type) return false;
  if (PyModule_AddObjectRef(module, "DType", reinterpret_cast<PyObject*>(g_dtype_type)) < 0) return false;
  if (PyModule_AddObjectRef(module, "Device", reinterpret_cast<PyObject*>(g_device_type)) < 0) return false;
  for (bp_dtype code = 0; code < BP_DTYPE_COUNT; ++code) {
    auto* object = PyObject_New(DTypeObject, g_dtype_type);
    if (!object) return false;
    object->code = code;
    const PyRef name = PyRef::steal(PyUnicode_FromString(dtype_name(code)));
    object->hash = name ? PyObject_Hash(name.get()) : -1;
    if (object->hash == -1) return false;
    g_dtypes[code] = reinterpret_cast<PyObject*>(object);
    if (PyModule_AddObjectRef(module, dtype_name(code), g_dtypes[code]) < 0) return false;
  }
  return true;
}

PyObject* wrap_dtype(bp_dtype dtype) noexcept {
  if (dtype >= BP_DTYPE_COUNT) return raise(BP_ERROR_INTERNAL, "dtype %d is not of this version", int{dtype});
  return Py_NewRef(g_dtypes[dtype]);
}

PyObject* wrap_device(bp_device device) noexcept {
  auto* object = PyObject_New(DeviceObject, g_device_type);
  if (object) object->device = device;
  return reinterpret_cast<PyObject*>(object);
}

int read_dtype(PyObject* object, bp_dtype* dtype) noexcept {
  if (Py_TYPE(object) == g_dtype_type) {
    *dtype = code_of(object);
    return 1;
  }
  if (PyUnicode_Check(object)) {
    const char* name = PyUnicode_AsUTF8(object);
    return name ? dtype_by_text(name, dtype) : -1;
  }
  if (PyType_Check(object)) {
    for (const NumberType& number : number_types()) {
      if (object == reinterpret_cast<PyObject*>(number.type)) {
        *dtype = number.dtype;
        return 1;
      }
    }
    return dtype_by_class(reinterpret_cast<PyTypeObject*>(object), dtype);
  }
  PyRef name = PyRef::steal(PyObject_GetAttrString(object, "name"));
  if (!name || !PyUnicode_Check(name.get())) {
    forget_error();
    return 0;
  }
  const char* text = PyUnicode_AsUTF8(name.get());
  const int read = text ? dtype_by_name(text, dtype) : -1;
  if (read != 1 || !is_swapped(object)) return read;
  return raise_swapped(*dtype);
}

int read_device(PyObject* object, bp_device* device) noexcept {
  if (Py_TYPE(object) == g_device_type) {
    *device = device_of(object);
    return 1;
  }
  if (!PyUnicode_Check(object)) return 0;
  Py_ssize_t size = 0;
  const char* name = PyUnicode_AsUTF8AndSize(object, &size);
  if (!name) return -1;
  return guarded([&] {
    *device = parse_device({name, static_cast<size_t>(size)});
    return 1;
  });
}

}  // namespace backplane::python
