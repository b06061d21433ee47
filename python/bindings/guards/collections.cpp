#include "bindings/guards/collections.hpp"

#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"

namespace backplane::python {

PyRef collected_objects(std::optional<int> generation) {
  const PyRef gc = imported_module("gc");
  PyRef all = PyRef::steal(generation ? gc ? PyObject_CallMethod(gc.get(), "get_objects", "i", *generation) : nullptr
                           : gc       ? PyObject_CallMethod(gc.get(), "get_objects", nullptr)
                                      : nullptr);
  forget_error();
  return all;
}

Objects young_objects() {
  Objects young;
  const PyRef all = collected_objects(0);
  for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all.get()); ++i) young.insert(PyList_GET_ITEM(all.get(), i));
  return young;
}

void age_objects() {
  const PyRef gc = imported_module("gc");
  const PyRef done = PyRef::steal(gc ? PyObject_CallMethod(gc.get(), "collect", "i", 0) : nullptr);
  forget_error();
}

PyRef collector_callbacks() {
  const PyRef gc = imported_module("gc");
  PyRef callbacks = PyRef::steal(gc ? PyObject_GetAttrString(gc.get(), "callbacks") : nullptr);
  forget_error();
  return callbacks && PyList_Check(callbacks.get()) ? std::move(callbacks) : PyRef{};
}

bool is_callback(PyObject* callbacks, PyObject* function) {
  for (Py_ssize_t i = 0; function && i < PyTuple_GET_SIZE(callbacks); ++i) {
    PyObject* const callback = PyTuple_GET_ITEM(callbacks, i);
    if (callback == function || (PyMethod_Check(callback) && PyMethod_GET_FUNCTION(callback) == function)) return true;
    const PyRef call = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(callback)), "__call__"));
    forget_error();
    if (call.get() == function) return true;
  }
  return false;
}

}  // namespace backplane::python
