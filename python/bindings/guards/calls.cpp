#include "bindings/guards/calls.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "bindings/guards/attribute_readers.hpp"
#include "bindings/guards/changing_calls.hpp"
#include "bindings/guards/hidden_state.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

using std::string_view;
using Arguments = std::span<PyObject* const>;

constexpr int kMostWrappers = 100;  // partial of partial of …

template <size_t N>
bool is_one_of(string_view word, const string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

PyRef word(const char* text) { return PyRef::steal(PyUnicode_InternFromString(text)); }

// ---- functions that are about one attribute, or about none -----------------------------------------------------

bool note_attribute_function(string_view name, Arguments arguments, Reads& reads, const Reads::Storing& at) {
  const auto is_name = [&](size_t i) { return arguments.size() > i && PyUnicode_Check(arguments[i]); };
  const bool plainly = name.starts_with("__");
  if (is_one_of(name, {"getattr", "hasattr", "__getattribute__"}) && is_name(1)) {
    reads.attribute(arguments[0], arguments[1], plainly);
    return true;
  }
  if (is_one_of(name, {"setattr", "__setattr__"}) && is_name(1) && arguments.size() > 2) {
    reads.stores_attribute(arguments[0], arguments[1], arguments[2], at, plainly);
    return true;
  }
  if (is_one_of(name, {"delattr", "__delattr__"}) && is_name(1)) {
    reads.stores_attribute(arguments[0], arguments[1], nullptr, at, plainly);
    return true;
  }
  if (name == "vars" && arguments.size() == 1) {
    if (const PyRef dict = word("__dict__")) reads.attribute(arguments[0], dict.get());
    return true;
  }
  if (is_one_of(name, {"dir", "__dir__", "__reduce_ex__", "__reduce__", "__getstate__"}) && !arguments.empty()) {
    reads.all_attributes(arguments[0]);
    return true;
  }
  // What these say of an object stays as it is, or shows where it is used.
  return is_one_of(name, {"isinstance", "issubclass", "type", "callable", "super", "globals", "locals", "object",
                          "property", "classmethod", "staticmethod", "print", "__build_class__", "__init_subclass__",
                          "__new__", "_getframe", "__set_name__", "__init__"});
}

bool note_item_function(string_view name, Arguments arguments, Reads& reads, const Reads::Storing& at) {
  if (arguments.size() < 2) return false;
  PyObject *container = arguments[0], *key = arguments[1];
  const bool gets = is_one_of(name, {"__getitem__", "getitem", "__contains__"});
  if (gets || (name == "get" && PyDict_Check(behind_proxy(container)))) {
    reads.subscript(container, key, name.starts_with("__"));
    if (name != "__contains__") {
      reads.loads_by_call();
    } else {
      reads.loads_nothing();
      if (!PyDict_Check(behind_proxy(container))) reads.content(container);
    }
    return true;
  }
  if (name == "setdefault" && PyDict_CheckExact(container)) {
    const bool is_there = PyDict_Contains(container, key) == 1;
    forget_error();
    reads.subscript(container, key);
    reads.loads_by_call();
    if (!is_there) reads.stores_entry(container, key, arguments.size() > 2 ? arguments[2] : Py_None, at);
    return true;
  }
  if (is_one_of(name, {"__setitem__", "setitem"}) && arguments.size() > 2) {
    reads.stores_entry(container, key, arguments[2], at, name.starts_with("__"));
    return true;
  }
  if (is_one_of(name, {"__delitem__", "delitem"})) {
    reads.stores_entry(container, key, nullptr, at, name.starts_with("__"));
    return true;
  }
  return false;
}

// ---- methods that change their object --------------------------------------------------------------------------

// With those whose result tells what the object held.
bool changes_object(string_view name, PyObject* self, bool* tells) {
  *tells = is_one_of(name, {"pop", "popitem", "popleft", "setdefault"});
  if (PyDict_Check(self)) return *tells || is_one_of(name, {"update", "clear", "__ior__", "move_to_end"});
  if (PyList_Check(self) || PyByteArray_Check(self) || is_named(self, "collections.deque") ||
      is_named(self, "array.array"))
    return *tells ||
           is_one_of(name, {"append", "extend", "insert", "remove", "clear", "sort", "reverse", "appendleft",
                            "extendleft", "rotate", "__iadd__", "__imul__", "frombytes", "fromlist", "byteswap"});
  if (PySet_Check(self))
    return *tells ||
           is_one_of(name, {"add", "discard", "remove", "update", "clear", "difference_update", "intersection_update",
                            "symmetric_difference_update", "__ior__", "__iand__", "__isub__", "__ixor__"});
  if (is_numpy_array(self))
    return is_one_of(name, {"fill", "sort", "partition", "put", "itemset", "setfield", "resize", "byteswap"});
  return false;
}

// update of a plain dict is so many stores. False: it is another method, or takes no dict.
bool note_update(string_view name, const SeenCall& call, Reads& reads, const Reads::Storing& at) {
  const Arguments all = call.arguments;
  if (name != "update" || !PyDict_CheckExact(all[0])) return false;
  const size_t n_keywords = call.keywords ? static_cast<size_t>(PyTuple_GET_SIZE(call.keywords)) : 0;
  const size_t last = all.size() - n_keywords;
  if (last > 2 || (last == 2 && !PyDict_CheckExact(all[1]))) return false;
  std::vector<std::pair<PyRef, PyRef>> entries;
  PyObject *key = nullptr, *value = nullptr;
  if (last == 2) {
    reads.content(all[1]);
    for (Py_ssize_t place = 0; PyDict_Next(all[1], &place, &key, &value);)
      entries.emplace_back(PyRef::borrow(key), PyRef::borrow(value));
  }
  for (size_t i = 0; i < n_keywords; ++i)
    entries.emplace_back(PyRef::borrow(PyTuple_GET_ITEM(call.keywords, static_cast<Py_ssize_t>(i))),
                         PyRef::borrow(all[last + i]));
  for (const auto& [one, stored] : entries) reads.stores_entry(all[0], one.get(), stored.get(), at);
  return true;
}

// `all`: the object first. The object's own method is called with the rest, a class's with all.
bool note_change(PyObject* function, string_view name, const SeenCall& call, Reads& reads, const Reads::Storing& at) {
  const Arguments all = call.arguments;
  bool tells = false;
  if (all.empty() || !changes_object(name, all[0], &tells)) return false;
  if (note_update(name, call, reads, at)) return true;
  if (tells) reads.content(all[0]);
  for (PyObject* argument : all.subspan(1)) reads.content(argument);
  const size_t n_keywords = call.keywords ? static_cast<size_t>(PyTuple_GET_SIZE(call.keywords)) : 0;
  const size_t first = PyCFunction_Check(function) ? 1 : 0, last = all.size() - n_keywords;
  PyRef positional = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(last - first)));
  for (size_t i = first; positional && i < last; ++i)
    PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(i - first), Py_NewRef(all[i]));
  PyRef named = PyRef::steal(n_keywords ? PyDict_New() : nullptr);
  for (size_t i = 0; named && i < n_keywords; ++i)
    PyDict_SetItem(named.get(), PyTuple_GET_ITEM(call.keywords, static_cast<Py_ssize_t>(i)), all[last + i]);
  reads.changes(all[0], function, std::move(positional), std::move(named), at);
  return true;
}

// A method of a container that is handed on, as `list.append` to `map`.
void note_handed_on(Arguments arguments, Reads& reads) {
  bool tells = false;
  for (PyObject* argument : arguments) {
    if (!PyCFunction_Check(argument) || !PyCFunction_GET_SELF(argument)) continue;
    PyObject* self = PyCFunction_GET_SELF(argument);
    if (changes_object(text_of_attribute(argument, "__name__"), self, &tells)) reads.content(self);
  }
}

// ---- calls -----------------------------------------------------------------------------------------------------

void note_arguments(Arguments arguments, Reads& reads, const Reads::Storing& at) {
  for (PyObject* argument : arguments) {
    reads.content(argument);
    if (PyIter_Check(argument) && !is_tensor(argument) && !is_for_messages(argument))
      reads.uses_up(argument, "takes elements of an iterator from outside", at);
  }
  note_handed_on(arguments, reads);
}

// Function, arguments and keyword arguments of a functools.partial are read where it is called.
bool unwrap_partial(PyRef* callable, std::vector<PyObject*>* arguments, Reads& reads) {
  const PyRef function = PyRef::steal(PyObject_GetAttrString(callable->get(), "func"));
  const PyRef first = PyRef::steal(PyObject_GetAttrString(callable->get(), "args"));
  const PyRef words = PyRef::steal(PyObject_GetAttrString(callable->get(), "keywords"));
  forget_error();
  if (!function || !first || !words) return false;
  for (const char* part : {"func", "args", "keywords"})
    if (const PyRef name = word(part)) reads.generic(Guard::kGeneric, callable->get(), name.get());
  reads.name(words.get(), reads.path_of(callable->get()) + ".keywords", false);
  reads.content(words.get());
  arguments->insert(arguments->begin(), PySequence_Fast_ITEMS(first.get()),
                    PySequence_Fast_ITEMS(first.get()) + PyTuple_GET_SIZE(first.get()));
  *callable = function;
  return true;
}

bool note_context_variable(string_view name, PyObject* self, Reads& reads) {
  if (!PyContextVar_CheckExact(self)) return false;
  if (name == "set" || name == "reset") {
    reads.sets_context(self);
  } else if (name == "get") {
    if (const PyRef key = word("value")) reads.generic(Guard::kContext, self, key.get());
  }
  return true;
}

void note_print(const SeenCall& call, Reads& reads, const Reads::Storing& at) {
  for (Py_ssize_t i = 0, count = call.keywords ? PyTuple_GET_SIZE(call.keywords) : 0; i < count; ++i) {
    PyObject* file = call.arguments[call.arguments.size() - static_cast<size_t>(count - i)];
    const bool is_file = PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call.keywords, i), "file") == 0;
    if (is_file && file != Py_None && !is_for_messages(file))
      reads.uses_up(file, "prints into an object from outside", at);
  }
}

// What NumPy takes for the time of the call.
bool is_moment(PyObject* argument) {
  return PyUnicode_Check(argument) && (PyUnicode_CompareWithASCIIString(argument, "now") == 0 ||
                                       PyUnicode_CompareWithASCIIString(argument, "today") == 0);
}

void note_function_of_c(PyObject* function, SeenCall& call, PyObject* self, Reads& reads, const Reads::Storing& at) {
  const std::string name = text_of_attribute(function, "__name__"), module = text_of_attribute(function, "__module__");
  const Arguments all = call.arguments;
  if (module.starts_with("numpy") && std::any_of(all.begin(), all.end(), is_moment))
    return reads.refuse("reads a clock", at);
  if (name == "unguarded" && module.starts_with("backplane")) return;
  if (const std::string what = changing_call(function, self, name, reads, at); !what.empty())
    return reads.refuse("calls " + name + "(), which " + what + ",", at);
  if (self && note_context_variable(name, self, reads)) return;
  if (self && is_named(self, "functools._lru_cache_wrapper")) return reads.cache(self, true, at);
  if (name == "print") note_print(call, reads, at);
  const Arguments own = self && !all.empty() && PyCFunction_Check(function) ? all.subspan(1) : all;
  note_hidden_state({function, self, name, module, all, own}, reads, at);
  if (name == "iter" || name == "__iter__") {
    for (PyObject* argument : all) reads.content(argument);
    return;
  }
  if (note_attribute_function(name, all, reads, at) || note_item_function(name, all, reads, at) ||
      note_change(function, name, call, reads, at))
    return;
  note_attribute_readers(function, name, module, all, reads);
  note_arguments(all, reads, at);
}

// Is the function what its class gives under its name, as a method before it is bound?
bool is_method_of(PyObject* object, PyObject* function) {
  if (Py_IS_TYPE(function, &PyMethodDescr_Type) || is_named(function, "wrapper_descriptor")) return true;
  const PyRef name = PyRef::steal(PyObject_GetAttrString(function, "__name__"));
  forget_error();
  return name && PyUnicode_Check(name.get()) && _PyType_Lookup(Py_TYPE(object), name.get()) == function;
}

// Do its objects draw from a seed, a new one where they are made without?
bool is_random_generator(const PyTypeObject* type) {
  if (string_view(type->tp_name).starts_with("numpy.random.")) return true;
  for (; type; type = type->tp_base)
    if (string_view(type->tp_name) == "_random.Random") return true;
  return false;
}

void note_class(PyObject* type, const SeenCall& call, Reads& reads, const Reads::Storing& at) {
  const string_view name = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  const bool has_seed = !call.arguments.empty() && call.arguments.front() != Py_None;
  if (!has_seed && is_random_generator(reinterpret_cast<PyTypeObject*>(type)))
    return reads.refuse("makes a random generator with a seed that is new each time", at);
  if (name.starts_with("numpy.") && std::any_of(call.arguments.begin(), call.arguments.end(), is_moment))
    return reads.refuse("reads a clock", at);
  if (name == "decimal.Decimal") note_decimal_context(reads);
  note_decimals(call.arguments, reads);
  if (is_one_of(name, {"type", "super", "property", "classmethod", "staticmethod"})) return;
  note_attribute_readers(type, std::string(name), "", call.arguments, reads);
  note_arguments(call.arguments, reads, at);
}

}  // namespace

void note_call(SeenCall call, Reads& reads, const Reads::Storing& at) {
  PyRef callable = PyRef::borrow(call.callable);
  for (int steps = 0; is_named(callable.get(), "functools.partial") && steps < kMostWrappers; ++steps)
    if (!unwrap_partial(&callable, &call.arguments, reads)) return;
  PyObject *function = callable.get(), *self = nullptr;
  if (PyMethod_Check(function)) {
    self = PyMethod_GET_SELF(function);
    call.arguments.insert(call.arguments.begin(), self);
    function = PyMethod_GET_FUNCTION(function);
  }
  if (PyFunction_Check(function)) {
    if (!call.by_package) return;
    note_settings(function, text_of_attribute(function, "__name__"), call.arguments, reads, at);
    return note_arguments(call.arguments, reads, at);
  }
  if (is_pointer_of_ctypes(function)) reads.keep_none("it calls a function through ctypes");
  if (PyWeakref_CheckRef(function)) {  // a guard would keep the object alive
    if (PyWeakref_GET_OBJECT(function) != Py_None) reads.keep_none("it follows a weak reference");
    return;
  }
  if (is_named(function, "functools._lru_cache_wrapper")) {
    reads.cache(function, false, at);
    return note_arguments(call.arguments, reads, at);
  }
  if (PyType_Check(function)) return note_class(function, call, reads, at);
  PyRef of_wrapper;
  if (PyCFunction_Check(function)) {
    PyObject* own = PyCFunction_GET_SELF(function);
    if (own && !PyModule_Check(own)) {
      self = own;
      call.arguments.insert(call.arguments.begin(), self);
    }
  } else if (is_named(function, "method-wrapper")) {
    of_wrapper = PyRef::steal(PyObject_GetAttrString(function, "__self__"));
    forget_error();
    if (of_wrapper) call.arguments.insert(call.arguments.begin(), of_wrapper.get());
  } else if (!self && !call.arguments.empty() && is_method_of(call.arguments[0], function)) {
    self = call.arguments[0];
  }
  note_function_of_c(function, call, self, reads, at);
}

}  // namespace backplane::python
