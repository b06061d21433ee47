// Functions that the interpreter calls in place of float, int, math.sqrt, len, type and numpy.prod, which would lose
// sight of a size.
#include <cmath>

#include "backplane/transforms.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/sizes/size_log.hpp"
#include "bindings/sizes/size_ratios.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

PyObject* float_of(PyObject*, PyObject* number) {
  SizeLog* log = SizeLog::current();
  if (!log || !is_size(number)) return is_size_float(number) ? Py_NewRef(number) : PyNumber_Float(number);
  const double value = PyLong_AsDouble(number);
  PyObject* made = value == -1.0 && PyErr_Occurred() ? nullptr : log->converted(log->operand(number), value);
  note_whole(made, number);
  return made;
}
PyObject* int_of(PyObject*, PyObject* number) {
  if (is_size(number)) return Py_NewRef(number);
  PyObject* rounded = is_size_float(number) ? rounded_ratio(number, Rounding::kToZero) : nullptr;
  return rounded || PyErr_Occurred() ? rounded : PyNumber_Long(number);
}
PyObject* root_of(PyObject*, PyObject* number) {
  SizeLog* log = SizeLog::current();
  const double value = is_size(number) ? PyLong_AsDouble(number) : PyFloat_AS_DOUBLE(number);
  if (value == -1.0 && PyErr_Occurred()) return nullptr;
  if (value < 0) return PyErr_SetString(PyExc_ValueError, "math domain error"), nullptr;
  if (is_size(number) && log) log->compare(SizeUse::Kind::kLess, log->operand(number), {}, false);
  if (is_size_float(number) && log) log->lose("the root of a number of a size", number);
  return log ? log->converted(log->operand(number), std::sqrt(value)) : PyFloat_FromDouble(std::sqrt(value));
}
PyObject* length_of(PyObject*, PyObject* tensor) {
  SizeLog* log = SizeLog::current();
  const bp_tensor* handle = handle_of(tensor);
  if (!log || handle->dl.ndim == 0) return PyLong_FromSsize_t(PyObject_Size(tensor));
  return log->read(handle->dl.shape[0]);
}
PyObject* type_of(PyObject*, PyObject* number) {
  return Py_NewRef(reinterpret_cast<PyObject*>(is_size(number) ? &PyLong_Type : &PyFloat_Type));
}

PyObject* const* functions_of(PyMethodDef (&definitions)[5]) {
  static PyObject* made[5];
  for (size_t i = 0; i < 5; ++i) made[i] = PyCFunction_New(&definitions[i], nullptr);
  return made;
}

PyObject* function_named(const char* module, const char* name) {
  const PyRef imported = imported_module(module);
  return imported ? PyObject_GetAttrString(imported.get(), name) : nullptr;
}

// math.prod for numpy.prod of whole numbers, among them a size: NumPy would make an array of their values.
PyObject* product_function(PyObject* callable, PyObject* numbers) {
  PyObject** const items = PySequence_Fast_ITEMS(numbers);
  bool any = false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(numbers); ++i) {
    if (!PyLong_Check(items[i])) return nullptr;
    any = any || is_size(items[i]);
  }
  if (!any) return nullptr;
  static PyObject *const of_numpy = function_named("numpy", "prod"), *const of_math = function_named("math", "prod");
  return callable == of_numpy ? of_math : nullptr;
}

}  // namespace

PyObject* size_function(PyObject* callable, PyObject* argument) {
  static PyMethodDef definitions[] = {{"float", float_of, METH_O, nullptr},
                                      {"int", int_of, METH_O, nullptr},
                                      {"sqrt", root_of, METH_O, nullptr},
                                      {"len", length_of, METH_O, nullptr},
                                      {"type", type_of, METH_O, nullptr}};
  static PyObject* const* const functions = functions_of(definitions);
  static PyObject *const sqrt = function_named("math", "sqrt"), *const length = function_named("builtins", "len");
  if (callable == length) return is_tensor(argument) && is_transformed(tensor_of(argument)) ? functions[3] : nullptr;
  if (PyTuple_CheckExact(argument) || PyList_CheckExact(argument)) return product_function(callable, argument);
  if (!is_of_size(argument)) return nullptr;
  if (callable == reinterpret_cast<PyObject*>(&PyFloat_Type)) return functions[0];
  if (callable == reinterpret_cast<PyObject*>(&PyLong_Type)) return functions[1];
  if (callable == sqrt) return functions[2];
  if (callable == reinterpret_cast<PyObject*>(&PyType_Type)) return functions[4];
  return nullptr;
}

}  // namespace backplane::python
