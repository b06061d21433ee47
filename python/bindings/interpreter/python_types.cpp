#include "bindings/interpreter/python_types.hpp"
#include "bindings/interpreter/errors.hpp"

namespace backplane::python {

static bool has_base(PyObject* object, std::string_view name) noexcept {
  for (const PyTypeObject* type = Py_TYPE(object); type; type = type->tp_base)
    if (type->tp_name == name) return true;
  return false;
}

bool is_numpy_array(PyObject* object) noexcept { return has_base(object, "numpy.ndarray"); }
bool is_numpy_scalar(PyObject* object) noexcept { return has_base(object, "numpy.generic"); }
bool is_numpy_record(PyObject* object) noexcept { return has_base(object, "numpy.void"); }

bool is_of_ctypes(PyObject* object) noexcept { return has_base(object, "_ctypes._CData"); }
bool is_pointer_of_ctypes(PyObject* object) noexcept {
  return has_base(object, "_ctypes._Pointer") || has_base(object, "_ctypes.PyCFuncPtr") ||
         has_base(object, "_ctypes.CFuncPtr");
}

PyObject* behind_proxy(PyObject* object) noexcept {
  // The interpreter's struct has this one member and no function that gives it.
  struct Proxy {
    PyObject_HEAD PyObject* mapping;
  };
  for (int steps = 0; steps < 100 && Py_IS_TYPE(object, &PyDictProxy_Type); ++steps)
    object = reinterpret_cast<Proxy*>(object)->mapping;
  return object;
}

bool is_of_this_package(PyTypeObject* type) noexcept {
  const std::string_view name = type->tp_name;
  return name.starts_with("backplane.");
}

bool has_python_method(PyTypeObject* type, const char* name) noexcept {
  const PyRef text = PyRef::steal(PyUnicode_InternFromString(name));
  PyObject* found = text ? _PyType_Lookup(type, text.get()) : nullptr;
  forget_error();
  return found && PyFunction_Check(found);
}

bool is_python_descriptor(PyObject* descriptor) noexcept {
  if (PyObject_TypeCheck(descriptor, &PyProperty_Type)) return true;
  // Classes of C may be heap types as well; their methods stand in the type's slots.
  const PyRef text = PyRef::steal(PyUnicode_InternFromString("__get__"));
  PyObject* get = text ? _PyType_Lookup(Py_TYPE(descriptor), text.get()) : nullptr;
  forget_error();
  return get && !Py_IS_TYPE(get, &PyWrapperDescr_Type);
}

PyObject* viewed_dict(PyObject* object) noexcept {
  struct View {  // the interpreter's, which it no longer declares from 3.13 on
    PyObject_HEAD PyObject* dict;
  };
  const bool is_view = PyDictKeys_Check(object) || PyDictValues_Check(object) || PyDictItems_Check(object);
  return is_view ? reinterpret_cast<View*>(object)->dict : nullptr;
}

bool is_super(PyObject* object) noexcept { return PyObject_TypeCheck(object, &PySuper_Type); }

void super_attribute(PyObject* super, const std::function<void(PyTypeObject*)>& look) {
  const PyRef from = PyRef::steal(PyObject_GetAttrString(super, "__thisclass__"));
  const PyRef of = PyRef::steal(PyObject_GetAttrString(super, "__self_class__"));
  forget_error();
  if (!from || !of || !PyType_Check(of.get())) return;
  const PyRef mro = PyRef::borrow(reinterpret_cast<PyTypeObject*>(of.get())->tp_mro);
  bool is_behind = false;
  for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro.get()); ++i) {
    PyObject* base = PyTuple_GET_ITEM(mro.get(), i);
    if (is_behind) look(reinterpret_cast<PyTypeObject*>(base));
    is_behind = is_behind || base == from.get();
  }
}

}  // namespace backplane::python
