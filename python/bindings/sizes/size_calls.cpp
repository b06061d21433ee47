#include "bindings/sizes/size_calls.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "bindings/interpreter/python_types.hpp"
#include "bindings/sizes/callables.hpp"
#include "bindings/sizes/size_log.hpp"
#include "bindings/sizes/size_ratios.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

using std::string_view;

constexpr int kMostDepth = 4;  // of containers among arguments

// Functions of C that ask the types of numbers, or hand them on as they are.
constexpr string_view kHandsOn[] = {
    "isinstance", "issubclass", "type",       "callable", "len",         "tuple",
    "list",       "dict",       "zip",        "map",      "filter",      "any",
    "all",        "iter",       "next",       "getattr",  "setattr",     "hasattr",
    "slice",      "print",      "repr",       "str",      "format",      "hash",
    "bool",       "set",        "frozenset",  "super",    "id",          "object",
    "ceil",       "floor",      "trunc",      "reversed", "enumerate",   "chain",
    "starmap",    "deepcopy",   "copy",       "append",   "extend",      "get",
    "setdefault", "update",     "appendleft", "items",    "keys",        "values",
    "__init__",   "__new__",    "unguarded",  "discard",  "__setattr__", "__getattribute__"};
// The same, but a float beside a size reads its digits.
constexpr string_view kComputes[] = {"min",    "max",        "abs", "sum", "divmod", "pow",     "sorted",   "prod",
                                     "reduce", "accumulate", "add", "sub", "mul",    "truediv", "floordiv", "mod",
                                     "neg",    "eq",         "ne",  "lt",  "le",     "gt",      "ge",       "remove"};

PyObject* a_size_in(PyObject* object, int depth) {
  if (is_of_size(object)) return object;
  if (depth == 0) return nullptr;
  const auto in_items = [&](PyObject* const* items, Py_ssize_t count) -> PyObject* {
    for (Py_ssize_t i = 0; i < count; ++i)
      if (PyObject* found = items[i] ? a_size_in(items[i], depth - 1) : nullptr) return found;
    return nullptr;
  };
  if (PyTuple_Check(object) || PyList_Check(object))
    return in_items(PySequence_Fast_ITEMS(object), PySequence_Fast_GET_SIZE(object));
  if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    PyObject* const parts[] = {slice->start, slice->stop, slice->step};
    return in_items(parts, 3);
  }
  PyObject *key = nullptr, *value = nullptr;
  if (PyDict_Check(object))
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);)
      if (PyObject* found = a_size_in(value, depth - 1)) return found;
  return nullptr;
}

bool holds_float(PyObject* object, int depth) {
  if (PyFloat_CheckExact(object)) return true;
  if (depth == 0 || !(PyTuple_Check(object) || PyList_Check(object))) return false;
  PyObject** const items = PySequence_Fast_ITEMS(object);
  return std::any_of(items, items + PySequence_Fast_GET_SIZE(object),
                     [&](PyObject* item) { return item && holds_float(item, depth - 1); });
}

template <size_t N>
bool is_one_of(const std::string& name, const string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

void note_size_operands(PyObject** left, PyObject** right) {
  SizeLog* log = SizeLog::current();
  if (!log) return;
  if (PyFloat_CheckExact(*left) && is_size(*right)) {  // float reads an int by itself
    const double value = PyLong_AsDouble(*right);
    PyObject* floating = PyErr_Occurred() ? nullptr : log->converted(log->operand(*right), value);
    forget_error();
    note_whole(floating, *right);
    if (floating) Py_SETREF(*right, floating);
    return;
  }
  for (PyObject* const operand : {*left, *right}) {
    PyObject* const other = operand == *left ? *right : *left;
    PyObject* const size = a_size_in(operand, 2);
    if (!size || is_of_size(other) || is_tensor(other) || PyLong_Check(other) || PyFloat_Check(other)) continue;
    if (!is_of_size(operand) && !is_of_size(other) && holds_float(other, 2))
      return log->lose("compares numbers with a size", size);
    const bool is_text = PyUnicode_Check(other) || PyBytes_Check(other) || PyByteArray_Check(other);
    if (is_text || PyComplex_Check(other) || is_of_numpy(other) ||
        (is_of_size(operand) && (PyList_Check(other) || PyTuple_Check(other))))
      return log->lose("computes with an object of " + std::string(Py_TYPE(other)->tp_name) + " and a size", size);
  }
}

void note_size_subscript(PyObject* container, PyObject* key) {
  SizeLog* log = SizeLog::current();
  PyObject* const size = log ? a_size_in(key, 2) : nullptr;
  if (!size || is_tensor(container) || PyDict_Check(container) || has_python_method(Py_TYPE(container), "__getitem__"))
    return;
  log->lose("takes elements by a size", size);
}

void note_size_search(PyObject* value, PyObject* container) {
  SizeLog* log = SizeLog::current();
  if (!log) return;
  if (!is_of_size(value)) {
    PyObject* const size = PyTuple_Check(container) || PyList_Check(container) ? a_size_in(container, 2) : nullptr;
    if (size && holds_float(value, 2)) log->lose("looks for a number among sizes", size);
    return;
  }
  if (holds_float(container, 1)) return log->lose("looks for a size among floats", value);
  if (PyTuple_Check(container) || PyList_Check(container) || PyDict_Check(container) || PyAnySet_Check(container) ||
      has_python_method(Py_TYPE(container), "__contains__") || has_python_method(Py_TYPE(container), "__iter__"))
    return;
  log->lose("looks for a size", value);
}

void note_size_attribute(PyObject* object, PyObject* name) {
  SizeLog* log = SizeLog::current();
  if (!log || !is_of_size(object) || !PyUnicode_Check(name)) return;
  for (const char* part : {"real", "imag", "numerator", "denominator"})
    if (PyUnicode_CompareWithASCIIString(name, part) == 0)
      return log->lose("reads " + std::string(part) + " of a size", object);
}

void note_size_call(PyObject** callable, std::span<PyObject* const> arguments, bool is_plain) {
  SizeLog* log = SizeLog::current();
  if (!log) return;
  if (is_plain && arguments.size() == 1)
    if (PyObject* own = size_function(*callable, arguments[0])) {
      Py_SETREF(*callable, Py_NewRef(own));
      return;
    }
  PyObject *size = nullptr, *const self = PyCFunction_Check(*callable) ? PyCFunction_GET_SELF(*callable) : nullptr;
  // A container compares its elements, and does not look at the digits.
  PyObject* const first = arguments.empty() ? nullptr : arguments[0];
  const bool is_of_container = is_plain && Py_IS_TYPE(*callable, &PyMethodDescr_Type) && first &&
                               (PyList_Check(first) || PyTuple_Check(first) || PyDict_Check(first));
  // Of a dict, a set takes the keys.
  const bool is_of_set = (self && PyAnySet_Check(self)) || (first && PyAnySet_Check(first));
  for (PyObject* argument : arguments.subspan(is_of_container ? 1 : 0))
    if (argument && !size && !(is_of_set && PyDict_Check(argument))) size = a_size_in(argument, kMostDepth);
  if (!size && self && is_of_size(self)) size = self;
  if (!size || is_python_callable(*callable) || is_ours(*callable)) return;
  const std::string name = name_of_callable(*callable);
  if (name == "getattr" && arguments.size() > 1 && is_of_size(first)) return note_size_attribute(first, arguments[1]);
  const bool is_of_text = self && (PyUnicode_Check(self) || is_of_numpy(self));
  // A callable that the function calls in turn, as map does.
  const auto loses = [](PyObject* argument) {
    const bool is_of_c = PyCFunction_Check(argument) || Py_IS_TYPE(argument, &PyMethodDescr_Type) ||
                         is_named(argument, "wrapper_descriptor") || is_named(argument, "method-wrapper");
    return is_of_c && !is_ours(argument) && !is_one_of(name_of_callable(argument), kHandsOn) &&
           !is_one_of(name_of_callable(argument), kComputes);
  };
  const auto is_float = [](PyObject* argument) { return argument && holds_float(argument, 2); };
  const bool is_round = name == "round" && arguments.size() == 1;
  const bool computes = is_one_of(name, kComputes) && std::none_of(arguments.begin(), arguments.end(), is_float);
  if ((is_one_of(name, kHandsOn) || is_round || computes) && !is_of_text &&
      std::none_of(arguments.begin(), arguments.end(), loses))
    return;
  log->lose("calls " + name + "() with a size", size);
}

}  // namespace backplane::python
