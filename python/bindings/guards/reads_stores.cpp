// Stores of the code: records the old values, so that they can be restored, and the stores that a replay repeats.
#include "bindings/guards/reads.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

using Before = Effects::Before;

PyRef function_of(const char* module, const char* name) {
  const PyRef imported = imported_module(module);
  PyRef function = PyRef::steal(imported ? PyObject_GetAttrString(imported.get(), name) : nullptr);
  forget_error();
  return function;
}

// setattr or delattr as the code called it: `plainly` past what the class defines.
PyRef attribute_setter(PyObject* object, bool sets, bool plainly) {
  if (!plainly) return function_of("builtins", sets ? "setattr" : "delattr");
  PyTypeObject* const type = PyType_Check(object) ? &PyType_Type : &PyBaseObject_Type;
  PyRef method =
      PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), sets ? "__setattr__" : "__delattr__"));
  forget_error();
  return method;
}

// A property of Python, whose code is seen when it runs.
bool has_settable_property(PyObject* object, PyObject* name) {
  PyObject* descriptor = PyType_Check(object) ? nullptr : _PyType_Lookup(Py_TYPE(object), name);
  return descriptor && Py_TYPE(descriptor)->tp_descr_set && is_python_descriptor(descriptor);
}

PyRef packed(PyObject* a, PyObject* b, PyObject* c) {
  return PyRef::steal(c ? PyTuple_Pack(3, a, b, c) : PyTuple_Pack(2, a, b));
}

}  // namespace

// Of a view, what all of the buffer had that it shows.
Reads::Place& Reads::place_before(PyObject* container) {
  const bool of_bytes = has_bytes(container) && !has_content(container);
  const PyRef whole = of_bytes ? buffer_owner(container) : PyRef::borrow(container);
  Place& own = place(of_bytes ? Guard::kBytes : Guard::kContent, whole.get());
  if (own.before) return own;
  own.before = own.is_read ? own.guard.content : of_bytes ? copied_bytes(whole.get()) : copied_content(whole.get());
  if (own.before) effects_.add(Before{whole, {}, own.before, Before::kContent});
  return own;
}

void Reads::store(PyObject* holder, PyRef function, PyRef arguments, std::string where, PyRef had,
                  const Storing& storing) {
  effects_.add(Effects::Effect{PyRef::borrow(holder),
                               std::move(function),
                               std::move(arguments),
                               {},
                               std::move(had),
                               std::move(where),
                               storing.line(),
                               storing.by_library,
                               {}});
}

// The dict of the object that the attribute of this name stands in; none: the object has it elsewhere, as in a slot.
PyRef Reads::dict_with(PyObject* object, PyObject* name) {
  PyObject* descriptor = _PyType_Lookup(Py_TYPE(object), name);
  return descriptor && Py_TYPE(descriptor)->tp_descr_set ? PyRef{} : dict_of(object);
}

PyRef Reads::own_attribute(PyObject* object, PyObject* name) {
  PyRef found;
  if (PyType_Check(object)) {
    found = PyRef::borrow(PyDict_GetItem(reinterpret_cast<PyTypeObject*>(object)->tp_dict, name));
  } else if (const PyRef dict = dict_with(object, name)) {
    found = PyRef::borrow(PyDict_GetItem(dict.get(), name));
  } else {
    found = PyRef::steal(PyObject_GetAttr(object, name));
  }
  forget_error();
  return found;
}

void Reads::stores_attribute(PyObject* object, PyObject* name, PyObject* value, const Storing& storing, bool plainly) {
  PyTypeObject* type = Py_TYPE(object);
  if (is_tensor(object) || is_of_this_package(type)) return;
  if (!plainly && has_python_method(type, value ? "__setattr__" : "__delattr__")) return;  // which is seen when it runs
  if (has_settable_property(object, name)) return;
  PyRef had = own_attribute(object, name);
  if (PyType_Check(object)) {
    class_stores_.try_emplace(name, PyRef::borrow(name));
  } else if (const PyRef dict = dict_with(object, name)) {
    place_before(dict.get());  // a read of all attributes, later, is one of what was there before
    Place& own = place(Guard::kAttributes, dict.get());
    set_owner(own.guard, object);
    is_first(own, name);
    forget_roots(dict.get(), name);
  } else {
    is_first(place(Guard::kGeneric, object), name);
    forget_roots(object, name);
  }
  effects_.add(Before{PyRef::borrow(object), PyRef::borrow(name), had, Before::kAttribute});
  const std::string where = path_of(object) + "." + spelled(name, PyObject_Str);
  store(object, attribute_setter(object, value != nullptr, plainly), packed(object, name, value), where, had, storing);
}

void Reads::stores_dict_entry(PyObject* dict, PyObject* key, PyObject* value, const Storing& storing) {
  PyRef had = PyRef::borrow(PyDict_GetItemWithError(dict, key));
  if (PyErr_Occurred()) return forget_error();  // a key that has no hash: the instruction fails
  Place& own = place_of_dict(dict);
  is_first(own, key);
  forget_roots(dict, key);
  const std::string where = place_of(own.guard, key);
  store(dict, function_of("operator", value ? "setitem" : "delitem"), packed(dict, key, value), where, std::move(had),
        storing);
}

void Reads::stores_entry(PyObject* container, PyObject* key, PyObject* value, const Storing& storing, bool plainly) {
  PyTypeObject* type = Py_TYPE(container);
  if (is_tensor(container) || is_of_this_package(type)) return;
  if (!plainly && has_python_method(type, value ? "__setitem__" : "__delitem__")) return;
  if (PyDict_Check(container)) {
    place_before(container);
    return stores_dict_entry(container, key, value, storing);
  }
  if (has_bytes(container) && (refuses_memory(container, storing) || !was_there(container))) return;
  if (!has_content(container) && !has_bytes(container)) return;
  place_before(container);
  if (PyList_Check(container) && PyLong_Check(key) && value) {
    Py_ssize_t i = PyLong_AsSsize_t(key);
    if (i < 0) i += PyList_GET_SIZE(container);
    const PyRef at = PyRef::steal(PyLong_FromSsize_t(i));
    if (at) is_first(place(Guard::kElements, container), at.get());
    forget_roots(container, at.get());
    forget_error();
    if (i >= 0 && i < PyList_GET_SIZE(container))
      return store(container, function_of("operator", "setitem"), packed(container, key, value),
                   path_of(container) + "[" + text_of_key(key) + "]", PyRef::borrow(PyList_GET_ITEM(container, i)),
                   storing);
  }
  place_before(container).is_changed = true;
  forget_roots(container, nullptr);
  PyRef had = PyRef::steal(value && PyLong_Check(key) ? PyObject_GetItem(container, key) : nullptr);
  forget_error();
  store(container, function_of("operator", value ? "setitem" : "delitem"), packed(container, key, value),
        path_of(container) + "[" + text_of_key(key) + "]", std::move(had), storing);
}

void Reads::stores_variable(PyObject* globals, PyObject* name, PyObject* value, const Storing& storing) {
  if (!PyDict_Check(globals)) return;
  effects_.add(Before{PyRef::borrow(globals), PyRef::borrow(name), PyRef::borrow(PyDict_GetItem(globals, name)),
                      Before::kEntry});
  Place& own = place(Guard::kEntries, globals);
  own.guard.of_variable = true;
  own.guard.path = "global ";
  stores_dict_entry(globals, name, value, storing);
}

void Reads::stores_cell(PyObject* cell, PyObject* name, PyObject* value, const Storing& storing) {
  is_first(place(Guard::kCell, cell), name);
  forget_roots(cell, nullptr);
  PyRef had = PyRef::borrow(PyCell_GET(cell));
  effects_.add(Before{PyRef::borrow(cell), {}, had, Before::kCell});
  effects_.add(Effects::Effect{PyRef::borrow(cell),
                               {},
                               PyRef::steal(value ? PyTuple_Pack(1, value) : PyTuple_New(0)),
                               {},
                               std::move(had),
                               "variable " + spelled(name, PyObject_Str),
                               storing.line(),
                               storing.by_library,
                               {}});
}

void Reads::sets_context(PyObject* variable) {
  Place& own = place(Guard::kContext, variable);
  const PyRef key = PyRef::steal(PyUnicode_InternFromString("value"));
  if (!key || !is_first(own, key.get())) return;
  PyObject* found = nullptr;
  if (PyContextVar_Get(variable, nullptr, &found) < 0) forget_error();
  const PyRef had = PyRef::steal(found);
  effects_.add(Before{PyRef::borrow(variable), {}, had, Before::kContext});
  contexts_.emplace_back(PyRef::borrow(variable), had);
}

void Reads::changes(PyObject* container, PyObject* function, PyRef arguments, PyRef keywords, const Storing& storing) {
  if (has_bytes(container) && !has_content(container) && (refuses_memory(container, storing) || !was_there(container)))
    return;
  place_before(container).is_changed = true;
  forget_roots(container, nullptr);
  effects_.add(Effects::Effect{PyRef::borrow(container),
                               PyRef::borrow(function),
                               std::move(arguments),
                               std::move(keywords),
                               {},
                               path_of(container),
                               storing.line(),
                               storing.by_library,
                               {}});
}

}  // namespace backplane::python
