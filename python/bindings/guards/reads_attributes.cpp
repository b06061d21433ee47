// Reads of attributes, and of what classes say.
#include <string_view>

#include "bindings/guards/class_protocols.hpp"
#include "bindings/guards/object_contents.hpp"
#include "bindings/guards/reads.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

void Reads::of_class(PyTypeObject* type, PyObject* name) {
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return;
  const auto stored = class_stores_.find(name);
  if (stored != class_stores_.end()) return;
  Place& own = place(Guard::kClass, reinterpret_cast<PyObject*>(type));
  PyObject* value = _PyType_Lookup(type, name);
  if (is_first(own, name)) note(own, name, value);
  if (value && may_be_traced(value)) loads(place(Guard::kClass, reinterpret_cast<PyObject*>(type)), name, value);
}

void Reads::special_methods(PyObject* operand) {
  const auto note_protocol = [&](PyTypeObject* type) {
    if (!is_changeable(type)) return;
    Guard& guard = place(Guard::kClass, reinterpret_cast<PyObject*>(type)).guard;
    if (!guard.content) guard.content = class_protocol(type);
  };
  PyTypeObject* type = Py_TYPE(operand);
  note_protocol(type);
  if (PyType_Check(operand)) return note_protocol(reinterpret_cast<PyTypeObject*>(operand));
  if (!is_changeable(type) || is_tensor(operand) || is_of_this_package(type)) return;
  Guard& guard = place(Guard::kType, operand).guard;  // another class may be assigned
  if (!guard.content) guard.content = PyRef::borrow(reinterpret_cast<PyObject*>(type));
}

// Some attributes of an array show its elements too.
void Reads::array_attribute(PyObject* array, PyObject* name) {
  if (!was_there(array)) return;
  if (PyUnicode_CompareWithASCIIString(name, "flags") == 0) keep_none("it reads the flags of an array");
  for (const char* shown : {"flat", "ctypes", "data", "__array_interface__", "__array_struct__"})
    if (PyUnicode_CompareWithASCIIString(name, shown) == 0) content(array);
  form(array);
}

void Reads::attribute(PyObject* object, PyObject* name, bool plainly) {
  if (is_numpy_array(object)) array_attribute(object, name);
  if (is_tensor(object) || is_of_this_package(Py_TYPE(object))) return of_class(Py_TYPE(object), name);
  if (is_pointer_of_ctypes(object)) keep_none("it reads memory through a pointer of ctypes");
  PyTypeObject* type = Py_TYPE(object);
  if (PyMethod_Check(object)) return attribute(PyMethod_GET_FUNCTION(object), name, plainly);
  if (PyType_Check(object)) {
    of_class(type, name);
    PyObject* of_meta = _PyType_Lookup(type, name);
    if (!of_meta || !Py_TYPE(of_meta)->tp_descr_set)
      of_class(reinterpret_cast<PyTypeObject*>(object), name);
    else if (!is_python_descriptor(of_meta) && PyUnicode_CompareWithASCIIString(name, "__dict__") != 0)
      generic(Guard::kGeneric, object, name);
    return;
  }
  if (PyModule_Check(object)) {
    const PyRef dict = dict_of(object);
    if (dict) this->name(dict.get(), path_of(object), false);
    PyObject* found = dict ? PyDict_GetItem(dict.get(), name) : nullptr;
    // This package fills itself when it is asked.
    const char* module = PyModule_GetName(object);
    if (dict && (found || !module || !std::string_view(module).starts_with("backplane"))) entry(dict.get(), name);
    const PyRef otherwise = PyRef::steal(dict && !found ? PyUnicode_InternFromString("__getattr__") : nullptr);
    if (otherwise) entry(dict.get(), otherwise.get());
    return forget_error();
  }
  if (is_super(object)) return super_attribute(object, [&](PyTypeObject* base) { of_class(base, name); });
  PyObject* descriptor = _PyType_Lookup(type, name);
  if (descriptor) special_methods(descriptor);
  name_as(reinterpret_cast<PyObject*>(type), object);
  of_class(type, name);
  for (const char* method : {"__getattribute__", "__getattr__"}) {
    const PyRef word = PyRef::steal(PyUnicode_InternFromString(method));
    if (word) of_class(type, word.get());
  }
  if (!plainly && has_python_method(type, "__getattribute__")) return;
  if (!plainly && type->tp_getattro != PyObject_GenericGetAttr && !has_python_method(type, "__getattr__"))
    return generic(Guard::kGeneric, object, name);
  if (descriptor && Py_TYPE(descriptor)->tp_descr_set) {
    if (PyUnicode_CompareWithASCIIString(name, "__dict__") == 0) return static_cast<void>(dict_of(object));
    if (is_python_descriptor(descriptor)) return;
    generic(Guard::kGeneric, object, name);
    if (!numbers_ || !Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) return;
    const PyRef value = PyRef::steal(PyObject_GetAttr(object, name));
    forget_error();
    return loads(place(Guard::kGeneric, object), name, value.get());
  }
  if (const PyRef dict = dict_of(object)) {
    name_as(dict.get(), object);
    entry(dict.get(), name);
  }
}

void Reads::name_as(PyObject* part, PyObject* object) {
  const auto named = names_.find(object);
  if (named == names_.end()) return;
  const std::string path = named->second.path;
  name(part, path, named->second.of_argument);
}

void Reads::instance_attributes(PyObject* object) {
  if (const PyRef dict = dict_of(object)) {
    name_as(dict.get(), object);
    content(dict.get());
  }
}

void Reads::all_attributes(PyObject* object) {
  if (PyType_Check(object)) {
    const PyRef mro = PyRef::borrow(reinterpret_cast<PyTypeObject*>(object)->tp_mro);
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro.get()); ++i) {
      auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro.get(), i));
      if (!PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE)) continue;
      name(base->tp_dict, path_of(reinterpret_cast<PyObject*>(base)), false);
      content(base->tp_dict);
    }
    return;
  }
  instance_attributes(object);
  if (is_instance(object)) all_attributes(reinterpret_cast<PyObject*>(Py_TYPE(object)));
}

}  // namespace backplane::python
