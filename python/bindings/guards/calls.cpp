#include "bindings/guards/calls.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "bindings/guards/python_types.hpp"
#include "bindings/interpreter/errors.hpp"
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

std::string text_of_attribute(PyObject* object, const char* name) {
  const PyRef value = PyRef::steal(PyObject_GetAttrString(object, name));
  const char* text = value && PyUnicode_Check(value.get()) ? PyUnicode_AsUTF8(value.get()) : nullptr;
  PyErr_Clear();
  return text ? text : "";
}

// ---- what cannot be repeated -----------------------------------------------------------------------------------

// Modules whose functions give something else at each call, with those of their names that do not.
struct Changing {
  string_view module, what;
  std::array<string_view, 8> harmless = {};
};
constexpr Changing kChanging[] = {
    {"time", "reads a clock", {"sleep", "strptime", "struct_time", "mktime"}},
    {"posix", "asks the operating system", {"fspath", "_path_normpath", "DirEntry", "strerror", "WEXITSTATUS"}},
    {"nt", "asks the operating system", {"fspath", "_path_normpath", "DirEntry"}},
    {"_random", "draws a random number that the graph does not know of", {}},
    {"_socket", "asks the network", {}},
    {"_ssl", "asks the network", {}},
    {"_sqlite3", "asks a database", {}},
    {"select", "asks the operating system", {}},
    {"_posixsubprocess", "starts a process", {}},
    {"_queue", "takes from a queue", {}},
    {"_uuid", "makes an identifier that is new each time", {}},
    {"resource", "asks the operating system", {}},
};

bool is_clock_of_datetime(PyObject* function, string_view name) {
  if (!is_one_of(name, {"now", "utcnow", "today"})) return false;
  PyObject* self = PyCFunction_Check(function) ? PyCFunction_GET_SELF(function) : nullptr;
  return self && PyType_Check(self) && text_of_attribute(self, "__module__") == "datetime";
}

// A generator of random numbers, by its class and its bases.
bool is_random_state(PyObject* self) {
  for (const PyTypeObject* type = Py_TYPE(self); type; type = type->tp_base) {
    const string_view name = type->tp_name;
    if (name == "_random.Random" || name.starts_with("numpy.random.")) return true;
  }
  return false;
}

bool is_file(PyObject* self) {
  const string_view name = Py_TYPE(self)->tp_name;
  return name.starts_with("_io.") && name != "_io.StringIO" && name != "_io.BytesIO";
}

std::string changing_call(PyObject* function, PyObject* self, const std::string& name, Reads& reads,
                          const Reads::Storing& at) {
  if (is_clock_of_datetime(function, name)) return "reads a clock";
  const std::string module = text_of_attribute(function, "__module__");
  if (module == "builtins" || module == "io" || module == "_io") {
    if (is_one_of(name, {"open", "input", "open_code"})) return "reads a file";
  }
  for (const Changing& one : kChanging)
    if (module == one.module && std::find(one.harmless.begin(), one.harmless.end(), name) == one.harmless.end())
      return std::string(one.what);
  if (module.starts_with("numpy.random") && !self && !is_one_of(name, {"default_rng", "RandomState", "Generator"}))
    return "draws a random number that the graph does not know of";
  if (!self || PyModule_Check(self)) return "";
  if (is_random_state(self)) reads.uses_up(self, "draws a random number from a generator from outside", at);
  if (is_file(self)) return "reads or writes a file";
  if (is_named(self, "_contextvars.ContextVar") || is_named(self, "ContextVar"))
    if (name == "set" || name == "reset") return "sets a context variable";
  return "";
}

// ---- functions that are about one attribute, or about none -----------------------------------------------------

bool note_attribute_function(string_view name, Arguments arguments, Reads& reads, const Reads::Storing& at) {
  const auto is_name = [&](size_t i) { return arguments.size() > i && PyUnicode_Check(arguments[i]); };
  if (is_one_of(name, {"getattr", "hasattr", "__getattribute__"}) && is_name(1)) {
    reads.attribute(arguments[0], arguments[1]);
    return true;
  }
  if (is_one_of(name, {"setattr", "__setattr__"}) && is_name(1) && arguments.size() > 2) {
    reads.stores_attribute(arguments[0], arguments[1], arguments[2], at);
    return true;
  }
  if (is_one_of(name, {"delattr", "__delattr__"}) && is_name(1)) {
    reads.stores_attribute(arguments[0], arguments[1], nullptr, at);
    return true;
  }
  if (name == "vars" && arguments.size() == 1) {
    const PyRef word = PyRef::steal(PyUnicode_InternFromString("__dict__"));
    if (word) reads.attribute(arguments[0], word.get());
    return true;
  }
  if (is_one_of(name, {"dir", "__dir__", "__reduce_ex__", "__reduce__", "__getstate__"}) && !arguments.empty()) {
    reads.all_attributes(arguments[0]);
    return true;
  }
  // What these say of an object stays as it is, or shows where it is used.
  return is_one_of(name, {"isinstance", "issubclass", "type", "id", "callable", "super", "iter", "globals", "locals",
                          "object", "property", "classmethod", "staticmethod", "print", "__build_class__",
                          "__init_subclass__", "__new__", "_getframe", "get_ident", "getrefcount"});
}

bool note_item_function(string_view name, Arguments arguments, Reads& reads, const Reads::Storing& at) {
  if (arguments.size() < 2) return false;
  PyObject *container = arguments[0], *key = arguments[1];
  if (is_one_of(name, {"get", "__getitem__", "getitem", "__contains__", "has_key"}) && PyDict_Check(container)) {
    reads.subscript(container, key);
    return true;
  }
  if (is_one_of(name, {"__getitem__", "getitem"})) {
    reads.subscript(container, key);
    return true;
  }
  if (is_one_of(name, {"__setitem__", "setitem"}) && arguments.size() > 2) {
    reads.stores_entry(container, key, arguments[2], at);
    return true;
  }
  if (is_one_of(name, {"__delitem__", "delitem"})) {
    reads.stores_entry(container, key, nullptr, at);
    return true;
  }
  return false;
}

// ---- methods that change their object --------------------------------------------------------------------------

// With those whose result tells what the object held.
bool changes_object(string_view name, PyObject* self, bool* tells) {
  *tells = is_one_of(name, {"pop", "popitem", "popleft", "setdefault"});
  if (PyDict_Check(self))
    return *tells || is_one_of(name, {"update", "clear", "__ior__", "move_to_end", "subtract"});
  if (PyList_Check(self) || PyByteArray_Check(self) || is_named(self, "collections.deque") ||
      is_named(self, "array.array"))
    return *tells || is_one_of(name, {"append", "extend", "insert", "remove", "clear", "sort", "reverse", "appendleft",
                                      "extendleft", "rotate", "__iadd__", "__imul__", "frombytes", "fromlist",
                                      "byteswap"});
  if (PySet_Check(self))
    return *tells || is_one_of(name, {"add", "discard", "remove", "update", "clear", "difference_update",
                                      "intersection_update", "symmetric_difference_update", "__ior__", "__iand__",
                                      "__isub__", "__ixor__"});
  if (is_named(self, "numpy.ndarray"))
    return is_one_of(name, {"fill", "sort", "partition", "put", "itemset", "setfield", "resize", "byteswap"});
  return false;
}

PyRef tuple_of(Arguments arguments) {
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
  for (size_t i = 0; tuple && i < arguments.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), Py_NewRef(arguments[i]));
  return tuple;
}

// `all`: the object first.
bool note_change(PyObject* function, const std::string& name, Arguments all, Reads& reads, const Reads::Storing& at) {
  bool tells = false;
  if (all.empty() || !changes_object(name, all[0], &tells)) return false;
  if (tells) reads.content(all[0]);
  for (PyObject* argument : all.subspan(1)) reads.content(argument);
  // The object's own method is called with the rest, a class's with all.
  const bool bound = PyCFunction_Check(function);
  reads.changes(all[0], function, tuple_of(bound ? all.subspan(1) : all), at);
  return true;
}

// ---- calls -----------------------------------------------------------------------------------------------------

void note_iterators(Arguments arguments, Reads& reads, const Reads::Storing& at) {
  for (PyObject* argument : arguments)
    if (PyIter_Check(argument) && !is_tensor(argument)) reads.uses_up(argument, "takes elements of an iterator from outside", at);
}

// Function and arguments of a functools.partial are read where it is called.
PyRef unwrapped_partial(PyObject* callable, std::vector<PyObject*>& arguments, Reads& reads) {
  const PyRef function = PyRef::steal(PyObject_GetAttrString(callable, "func"));
  const PyRef first = PyRef::steal(PyObject_GetAttrString(callable, "args"));
  const PyRef words = PyRef::steal(PyObject_GetAttrString(callable, "keywords"));
  PyErr_Clear();
  if (!function || !first || !words) return {};
  for (const char* part : {"func", "args", "keywords"}) {
    const PyRef name = PyRef::steal(PyUnicode_InternFromString(part));
    if (name) reads.generic(Guard::kGeneric, callable, name.get());
  }
  reads.content(words.get());
  arguments.insert(arguments.begin(), PySequence_Fast_ITEMS(first.get()),
                   PySequence_Fast_ITEMS(first.get()) + PyTuple_GET_SIZE(first.get()));
  return function;
}

std::string note_function_of_c(PyObject* function, Arguments all, PyObject* self, Reads& reads,
                               const Reads::Storing& at) {
  const std::string name = text_of_attribute(function, "__name__");
  if (name == "unguarded" && text_of_attribute(function, "__module__").starts_with("backplane")) return "";
  if (std::string what = changing_call(function, self, name, reads, at); !what.empty())
    return name + "() " + what;
  if (self && is_named(self, "ContextVar") && name == "get") {
    const PyRef key = PyRef::steal(PyUnicode_InternFromString("value"));
    if (key) reads.generic(Guard::kContext, self, key.get());
    return "";
  }
  if (name == "deepcopy" || note_attribute_function(name, all, reads, at) ||
      note_item_function(name, all, reads, at) || note_change(function, name, all, reads, at))
    return "";
  for (PyObject* argument : all) reads.content(argument);
  if (name != "__iter__" && name != "iter") note_iterators(all, reads, at);
  return "";
}

}  // namespace

std::string note_call(const SeenCall& call, Reads& reads, const Reads::Storing& at) {
  std::vector<PyObject*> arguments(call.arguments.begin(), call.arguments.end());
  PyRef callable = PyRef::borrow(call.callable);
  for (int steps = 0; is_named(callable.get(), "functools.partial") && steps < kMostWrappers; ++steps) {
    callable = unwrapped_partial(callable.get(), arguments, reads);
    if (!callable) return "";
  }
  PyObject* function = callable.get();
  if (PyMethod_Check(function)) {
    arguments.insert(arguments.begin(), PyMethod_GET_SELF(function));
    function = PyMethod_GET_FUNCTION(function);
  }
  if (PyFunction_Check(function)) {
    if (!call.by_package) return "";
    for (PyObject* argument : arguments) reads.content(argument);
    note_iterators(arguments, reads, at);
    return "";
  }
  if (PyWeakref_CheckRef(function)) {
    const PyRef key = PyRef::steal(PyUnicode_InternFromString("()"));
    if (key) reads.generic(Guard::kReferent, function, key.get());
    return "";
  }
  if (PyType_Check(function)) {
    const string_view name = reinterpret_cast<PyTypeObject*>(function)->tp_name;
    const bool draws = name.starts_with("numpy.random.") && arguments.empty();
    if (draws) return std::string(name) + "() is seeded anew each time";
    if (is_one_of(name, {"type", "super", "property", "classmethod", "staticmethod"})) return "";
    for (PyObject* argument : arguments) reads.content(argument);
    note_iterators(arguments, reads, at);
    return "";
  }
  const bool is_method = PyCFunction_Check(function) && PyCFunction_GET_SELF(function) &&
                         !PyModule_Check(PyCFunction_GET_SELF(function));
  PyObject* self = is_method ? PyCFunction_GET_SELF(function) : nullptr;
  if (self) arguments.insert(arguments.begin(), self);
  const bool is_descriptor = Py_IS_TYPE(function, &PyMethodDescr_Type) || is_named(function, "wrapper_descriptor");
  if (is_named(function, "method-wrapper")) {
    const PyRef of = PyRef::steal(PyObject_GetAttrString(function, "__self__"));
    PyErr_Clear();
    if (of) arguments.insert(arguments.begin(), of.get());
  }
  if (is_descriptor && !arguments.empty()) self = arguments[0];
  return note_function_of_c(function, arguments, self, reads, at);
}

}  // namespace backplane::python
