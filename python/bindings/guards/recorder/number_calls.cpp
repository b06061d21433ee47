#include "bindings/guards/recorder/number_calls.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include "bindings/guards/object_contents.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/ops/op_type.hpp"
#include "bindings/sizes/callables.hpp"
#include "bindings/sizes/number_log.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

using std::string_view;

constexpr int kMostContainers = 8;  // one in the other

// Functions of C that hand objects on as they are, or ask their types.
constexpr string_view kKeepsObjects[] = {"isinstance",
                                         "issubclass",
                                         "callable",
                                         "len",
                                         "tuple",
                                         "list",
                                         "dict",
                                         "zip",
                                         "iter",
                                         "next",
                                         "getattr",
                                         "setattr",
                                         "print",
                                         "repr",
                                         "str",
                                         "format",
                                         "hash",
                                         "bool",
                                         "super",
                                         "object",
                                         "items",
                                         "keys",
                                         "values",
                                         "append",
                                         "extend",
                                         "appendleft",
                                         "setdefault",
                                         "update",
                                         "get",
                                         "__init__",
                                         "__new__",
                                         "__setattr__",
                                         "__getattribute__",
                                         "unguarded",
                                         "hasattr",
                                         "types.SimpleNamespace",
                                         "SimpleNamespace",
                                         "reversed",
                                         "chain"};

bool keeps_objects(const std::string& name) {
  return std::find(std::begin(kKeepsObjects), std::end(kKeepsObjects), name) != std::end(kKeepsObjects);
}

template <class Visit>
bool any_number_in(PyObject* object, int depth, const Visit& visit) {
  if (!object) return false;
  if (is_traced_number(object)) return visit(object);
  if (depth == 0) return false;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      if (any_number_in(PySequence_Fast_GET_ITEM(object, i), depth - 1, visit)) return true;
  } else if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    for (PyObject* part : {slice->start, slice->stop, slice->step})
      if (any_number_in(part, depth - 1, visit)) return true;
  } else if (PyDict_Check(object)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);)
      if (any_number_in(value, depth - 1, visit)) return true;
  } else if (is_named(object, "functools.partial") || is_named(object, "collections.deque") ||
             (PyIter_Check(object) && !is_tensor(object)) || viewed_dict(object) ||
             is_named(object, "types.SimpleNamespace") || is_named(object, "mappingproxy")) {
    struct Children {
      const Visit* visit;
      int depth;
    } children{&visit, depth - 1};
    const auto look = [](PyObject* child, void* of) {
      auto* own = static_cast<Children*>(of);
      return any_number_in(child, own->depth, *own->visit) ? 1 : 0;
    };
    if (Py_TYPE(object)->tp_traverse) return Py_TYPE(object)->tp_traverse(object, look, &children) != 0;
  }
  return false;
}

void look_at_all(PyObject* object) {
  any_number_in(object, kMostContainers, [](PyObject* number) {
    NumberLog::current()->look_at(number);
    return false;
  });
}

// Replaces a plain number by one of a type that follows computations with it.
void make_traced(PyObject** place) {
  if (PyRef made = as_traced(*place)) Py_SETREF(*place, made.release());
  forget_error();
}

// An object with operators of Python code, which is watched itself.
bool has_python_operators(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || is_of_numpy(object)) return false;
  if (PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object)) return false;
  const char* const methods[] = {"__add__", "__radd__", "__mul__", "__rmul__", "__eq__", "__lt__"};
  return std::any_of(std::begin(methods), std::end(methods),
                     [&](const char* method) { return has_python_method(type, method); });
}

// ---- Functions of numbers

PyObject* call_followed(PyObject* function, PyObject* const* arguments, Py_ssize_t count) {
  return compute(function, arguments, static_cast<size_t>(count));
}

PyObject* type_of_number(PyObject*, PyObject* number) {
  return Py_NewRef(reinterpret_cast<PyObject*>(is_traced_number(number) ? Py_TYPE(number)->tp_base : Py_TYPE(number)));
}

// A callable that replaces a function of numbers, and holds it.
PyRef followed_function(PyObject* function) {
  static PyMethodDef definition = {
      "followed", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_followed)), METH_FASTCALL, nullptr};
  return PyRef::steal(PyCFunction_New(&definition, function));
}

// Functions whose results follow from the values of their arguments alone. They live as long as the process.
const std::unordered_set<PyObject*>& number_functions() {
  static const auto* functions = [] {
    auto* made = new std::unordered_set<PyObject*>;
    const auto add_all = [&](const char* name) {
      const PyRef module = imported_module(name);
      PyObject *word = nullptr, *value = nullptr;
      PyObject* dict = module ? PyModule_GetDict(module.get()) : nullptr;
      for (Py_ssize_t at = 0; dict && PyDict_Next(dict, &at, &word, &value);)
        if (PyCFunction_Check(value)) made->insert(Py_NewRef(value));
    };
    add_all("math");
    add_all("_operator");
    const PyRef builtins = imported_module("builtins");
    for (const char* name : {"float", "int", "abs", "round", "min", "max", "pow"})
      if (PyObject* one = builtins ? PyObject_GetAttrString(builtins.get(), name) : nullptr) made->insert(one);
    forget_error();
    return made;
  }();
  return *functions;
}

bool are_numbers(std::span<PyObject*> arguments) {
  return !arguments.empty() && arguments.size() <= kMostOperands &&
         std::all_of(arguments.begin(), arguments.end(), [](PyObject* one) {
           return one && (is_traced_number(one) || may_be_traced(one) || PyBool_Check(one));
         });
}

void settle_all(std::span<PyObject*> arguments) {
  for (PyObject*& argument : arguments) {
    if (!argument) continue;
    look_at_all(argument);
    settle_number(&argument);
  }
}

bool hands_on(PyObject* callable, std::span<PyObject*> arguments) {
  const std::string name = name_of_callable(callable);
  PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  if (self && (is_traced_number(self) || PyUnicode_Check(self) || is_of_numpy(self))) return false;
  if (!self && !arguments.empty() && arguments[0] && (PyUnicode_Check(arguments[0]) || is_of_numpy(arguments[0])))
    return name == "print" || name == "str";
  PyObject* const own = Py_IS_TYPE(callable, &PyMethodDescr_Type) && !arguments.empty() ? arguments[0] : self;
  if (own && !PyModule_Check(own) && !is_container(own)) return false;
  const bool calls_first = name == "map" || name == "filter" || name == "partial" || name == "functools.partial";
  if (calls_first) return !arguments.empty() && arguments[0] && is_python_callable(arguments[0]);
  return keeps_objects(name);
}

}  // namespace

void settle_number(PyObject** place) {
  if (!is_traced_number(*place)) return;
  if (NumberLog* log = NumberLog::current()) log->look_at(*place);
  if (PyRef plain = untraced(*place)) Py_SETREF(*place, plain.release());
  forget_error();
}

void note_number_operands(PyObject** left, PyObject** right) {
  const bool of_left = left && is_traced_number(*left), of_right = is_traced_number(*right);
  if (!of_left && !of_right) {
    for (PyObject** operand : {left, right})
      if (left && (PyTuple_Check(*operand) || PyList_Check(*operand) || PyDict_Check(*operand))) look_at_all(*operand);
    return;
  }
  if (!left || (of_left && of_right)) return;
  PyObject** const other = of_left ? right : left;
  if (may_be_traced(*other) || PyBool_Check(*other)) {
    if (other == left) make_traced(left);  // its own type would read the digits
    return;
  }
  if (is_tensor(*other) || has_python_operators(*other)) return;
  look_at_all(*other);
  settle_number(of_left ? left : right);
}

void note_number_key(PyObject* container, PyObject** key) {
  if (has_python_method(Py_TYPE(container), "__getitem__") || has_python_method(Py_TYPE(container), "__setitem__"))
    return;
  look_at_all(*key);
  settle_number(key);
}

void note_number_search(PyObject** value, PyObject** container) {
  if (has_python_method(Py_TYPE(*container), "__contains__")) return;
  look_at_all(*value);
  look_at_all(*container);
  settle_number(value);
}

void note_number_item(PyObject* container, PyObject** value) {
  if (PyList_Check(container) || PyDict_Check(container) || has_python_method(Py_TYPE(container), "__setitem__"))
    return;
  look_at_all(*value);
  settle_number(value);
}

void note_number_attribute(PyObject* object, PyObject* name, PyObject** value) {
  PyObject* descriptor = PyType_Check(object) ? nullptr : _PyType_Lookup(Py_TYPE(object), name);
  const bool is_read = descriptor && Py_TYPE(descriptor)->tp_descr_set && !is_python_descriptor(descriptor) &&
                       !(Py_IS_TYPE(descriptor, &PyMemberDescr_Type) && is_named(descriptor, "member_descriptor") &&
                         PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE));
  if (!is_read && !is_of_this_package(Py_TYPE(object))) return;
  look_at_all(*value);
  settle_number(value);
}

bool note_number_call(PyObject** callable, std::span<PyObject*> arguments, bool is_plain) {
  PyObject* const self = PyCFunction_Check(*callable) ? PyCFunction_GET_SELF(*callable) : nullptr;
  if (*callable == reinterpret_cast<PyObject*>(&PyType_Type) && arguments.size() == 1 &&
      is_traced_number(arguments[0])) {
    static PyMethodDef definition = {"type", type_of_number, METH_O, nullptr};
    if (PyObject* own = PyCFunction_New(&definition, nullptr)) Py_SETREF(*callable, own);
    return true;
  }
  if (is_python_callable(*callable)) return true;
  const auto is_one = [](PyObject* argument) { return argument && is_traced_number(argument); };
  const bool is_direct = std::any_of(arguments.begin(), arguments.end(), is_one);
  if (is_direct && is_plain && are_numbers(arguments) && number_functions().count(*callable)) {
    if (PyRef own = followed_function(*callable)) Py_SETREF(*callable, own.release());
    forget_error();
    return true;
  }
  if (is_named(*callable, "functools.partial")) {
    const PyRef function = PyRef::steal(PyObject_GetAttrString(*callable, "func"));
    forget_error();
    if (function && (is_python_callable(function.get()) || is_ours(function.get()))) return true;
    look_at_all(*callable);
  }
  if (is_ours(*callable) && !PyType_Check(*callable) && !PyCFunction_Check(*callable) &&
      !Py_IS_TYPE(*callable, &PyMethodDescr_Type)) {
    // An op reads its numbers itself, but not those in lists.
    if (Py_TYPE(*callable) == g_op_type)
      for (PyObject* argument : arguments)
        if (!is_one(argument)) look_at_all(argument);
    return true;
  }
  if (self && is_traced_number(self)) look_at_all(self);
  if (hands_on(*callable, arguments)) return true;
  settle_all(arguments);
  return false;
}

}  // namespace backplane::python
