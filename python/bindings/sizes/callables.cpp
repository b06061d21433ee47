#include "bindings/sizes/callables.hpp"

#include <string_view>

#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/sizes/size_log.hpp"
#include "bindings/tensor/number_hook.hpp"

namespace backplane::python {

bool is_of_numpy(PyObject* object) { return is_numpy_array(object) || is_numpy_scalar(object); }

std::string name_of_callable(PyObject* callable) {
  const PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  forget_error();
  return text ? text : Py_TYPE(callable)->tp_name;
}

bool is_ours(PyObject* callable) {
  if (is_of_this_package(Py_TYPE(callable))) return true;
  if (PyType_Check(callable)) return is_of_this_package(reinterpret_cast<PyTypeObject*>(callable));
  const PyRef module = PyRef::steal(PyObject_GetAttrString(callable, "__module__"));
  const char* text = module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : nullptr;
  forget_error();
  if (text && std::string_view(text).starts_with("backplane")) return true;
  PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  if (Py_IS_TYPE(callable, &PyMethodDescr_Type) || is_named(callable, "wrapper_descriptor"))
    return is_of_this_package(PyDescr_TYPE(callable));
  return self && !is_of_size(self) && !is_traced_number(self) && !PyModule_Check(self) &&
         is_of_this_package(Py_TYPE(self));
}

bool is_python_callable(PyObject* callable) {
  if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
  if (PyFunction_Check(callable)) return true;
  if (PyType_Check(callable)) {
    auto* type = reinterpret_cast<PyTypeObject*>(callable);
    return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !is_of_numpy(callable) &&
           (has_python_method(type, "__init__") || has_python_method(type, "__new__") ||
            (type->tp_init == PyBaseObject_Type.tp_init && type->tp_new == PyBaseObject_Type.tp_new));
  }
  return has_python_method(Py_TYPE(callable), "__call__");
}

}  // namespace backplane::python
