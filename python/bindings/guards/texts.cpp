#include "bindings/guards/texts.hpp"

#include <algorithm>

#include "bindings/guards/object_contents.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

constexpr int kMostContainers = 8;  // in each other

// repr, str, format and ascii; methods of str that take objects. Not print, whose text nobody reads.
bool makes_text(PyObject* function) {
  if (function == reinterpret_cast<PyObject*>(&PyUnicode_Type)) return true;
  if (!PyCFunction_Check(function) && !Py_IS_TYPE(function, &PyMethodDescr_Type)) return false;
  const PyRef name = PyRef::steal(PyObject_GetAttrString(function, "__name__"));
  forget_error();
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  const std::string_view word = text ? text : "";
  return word == "repr" || word == "ascii" || word == "format" || word == "format_map";
}

// May it call a function that it is given, where no code of Python is seen?
bool calls_arguments(PyObject* function) {
  if (PyFunction_Check(function)) return false;
  if (PyType_Check(function)) return !has_python_method(reinterpret_cast<PyTypeObject*>(function), "__init__");
  const std::string_view name = name_of_c_function(function);
  return name != "isinstance" && name != "issubclass";
}

PyRef attributes_in(PyObject* object) {
  const PyRef dict = PyRef::steal(PyObject_GenericGetDict(object, nullptr));
  PyRef values = PyRef::steal(dict && PyDict_Check(dict.get()) ? PyDict_Values(dict.get()) : nullptr);
  forget_error();
  return values;
}

bool shows_tensor_within(PyObject* object, int depth) {
  if (is_tensor(object)) return true;
  if (depth == 0) return false;
  PyRef content = copied_elements(object);
  if (content && PyDict_Check(content.get())) content = PyRef::steal(PyDict_Values(content.get()));
  if (is_named(object, "types.SimpleNamespace")) content = attributes_in(object);
  for (Py_ssize_t i = 0; content && PyList_Check(content.get()) && i < PyList_GET_SIZE(content.get()); ++i)
    if (shows_tensor_within(PyList_GET_ITEM(content.get(), i), depth - 1)) return true;
  return false;
}

}  // namespace

std::string_view name_of_c_function(PyObject* function) {
  if (!PyCFunction_Check(function)) return "";
  const PyMethodDef* method = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  return method && method->ml_name ? method->ml_name : "";
}

bool may_make_text(PyObject* function, const std::vector<PyObject*>& arguments) {
  return makes_text(function) ||
         (calls_arguments(function) && std::any_of(arguments.begin(), arguments.end(), makes_text));
}

bool shows_tensor(PyObject* object) { return shows_tensor_within(object, kMostContainers); }

}  // namespace backplane::python
