#include "bindings/guards/hidden_state.hpp"

#include <algorithm>
#include <string_view>

#include "bindings/guards/object_contents.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

using std::string_view;
using Arguments = std::span<PyObject* const>;

template <size_t N>
bool is_among(string_view word, const string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// Functions that are cheap to call again: their results are guards.
constexpr string_view kAskedAgain[] = {"_abc_instancecheck",
                                       "_abc_subclasscheck",
                                       "__subclasses__",
                                       "get_ident",
                                       "getrecursionlimit",
                                       "getswitchinterval",
                                       "localeconv",
                                       "setlocale",
                                       "getcontext",
                                       "getsignal",
                                       "locked",
                                       "getprofile",
                                       "get_int_max_str_digits",
                                       "getweakrefcount",
                                       "_get_extobj_dict",
                                       "is_tracing",
                                       "_is_owned",
                                       "getdefaulttimeout",
                                       "get_num_threads",
                                       "get_printoptions",
                                       "get_coroutine_origin_tracking_depth"};
constexpr string_view kOfThisPackage[] = {"get_num_threads", "get_printoptions"};
// Counters, which other code moves on.
constexpr string_view kCounters[] = {"call_counts", "memory_stats", "compile_log"};

// Modules whose functions and classes compute with their arguments alone, or whose other sources this folder knows.
constexpr string_view kKnownModules[] = {"builtins",
                                         "_abc",
                                         "_ast",
                                         "_bisect",
                                         "_codecs",
                                         "_collections",
                                         "_contextvars",
                                         "_csv",
                                         "_datetime",
                                         "datetime",
                                         "_decimal",
                                         "decimal",
                                         "_functools",
                                         "functools",
                                         "_heapq",
                                         "_io",
                                         "io",
                                         "_json",
                                         "_locale",
                                         "_opcode",
                                         "_operator",
                                         "operator",
                                         "_pickle",
                                         "_random",
                                         "random",
                                         "_signal",
                                         "_sre",
                                         "re",
                                         "_stat",
                                         "_statistics",
                                         "_string",
                                         "_struct",
                                         "struct",
                                         "_symtable",
                                         "_thread",
                                         "_tokenize",
                                         "_tracemalloc",
                                         "_typing",
                                         "typing",
                                         "_warnings",
                                         "_weakref",
                                         "weakref",
                                         "_zoneinfo",
                                         "zoneinfo",
                                         "array",
                                         "binascii",
                                         "cmath",
                                         "collections",
                                         "contextvars",
                                         "errno",
                                         "gc",
                                         "itertools",
                                         "marshal",
                                         "math",
                                         "posix",
                                         "nt",
                                         "sys",
                                         "time",
                                         "types",
                                         "unicodedata",
                                         "zlib",
                                         "_hashlib",
                                         "_md5",
                                         "_sha1",
                                         "_sha2",
                                         "_sha256",
                                         "_sha512",
                                         "_sha3",
                                         "_blake2",
                                         "_crypt",
                                         "_bz2",
                                         "_lzma",
                                         "_asyncio",
                                         "abc",
                                         "copyreg",
                                         "enum",
                                         "ml_dtypes",
                                         "numpy",
                                         "scipy",
                                         "backplane",
                                         "_frozen_importlib",
                                         "_imp",
                                         "atexit",
                                         "select",
                                         "_socket",
                                         "_queue",
                                         "pyexpat",
                                         "_multiprocessing"};
// Among them classes whose objects have a state that nothing shows.
constexpr string_view kStatefulClasses[] = {"_hashlib.", "_md5.",  "_sha1.",   "_sha2.",  "_sha256.",
                                            "_sha512.",  "_sha3.", "_blake2.", "zlib.",   "_bz2.",
                                            "_lzma.",    "_csv.",  "_pickle.", "pyexpat."};
constexpr string_view kOfTimeZone[] = {"mktime", "timestamp", "fromtimestamp", "astimezone", "strftime", "timetuple"};
// Functions of `sys` that return constants of the interpreter, and not its settings.
constexpr string_view kOfInterpreter[] = {"intern",
                                          "getsizeof",
                                          "getdefaultencoding",
                                          "getfilesystemencoding",
                                          "_getframe",
                                          "exc_info",
                                          "exception",
                                          "getrecursionlimit",
                                          "gettrace",
                                          "getprofile",
                                          "getswitchinterval",
                                          "get_int_max_str_digits",
                                          "is_finalizing",
                                          "_getframemodulename",
                                          "getrefcount",
                                          "_current_frames",
                                          "getfilesystemencodeerrors",
                                          "audit"};

bool is_decimal(PyObject* object) { return is_named(object, "decimal.Decimal"); }

// The callable to which a function like map passes elements.
bool is_class_of_decimals(PyObject* object) {
  return PyType_Check(object) && string_view(reinterpret_cast<PyTypeObject*>(object)->tp_name) == "decimal.Decimal";
}

bool holds_decimal(PyObject* object) {
  if (is_decimal(object)) return true;
  const PyRef elements = copied_elements(object);
  if (!elements || !PyList_Check(elements.get())) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(elements.get()); ++i)
    if (is_decimal(PyList_GET_ITEM(elements.get(), i))) return true;
  return false;
}

void note_text_of_context(PyObject* context, Reads& reads) {
  const PyRef builtins = imported_module("builtins");
  const PyRef repr = PyRef::steal(builtins ? PyObject_GetAttrString(builtins.get(), "repr") : nullptr);
  const PyRef arguments = PyRef::steal(PyTuple_Pack(1, context));
  if (repr && arguments) reads.result(repr.get(), arguments.get());
  forget_error();
}

// tzset() sets the variables of `time`.
void note_time_zone(const CallOfC& call, Reads& reads) {
  const string_view of = call.self ? Py_TYPE(call.self)->tp_name : "";
  const bool is_type = call.self && PyType_Check(call.self);
  const string_view of_class = is_type ? reinterpret_cast<PyTypeObject*>(call.self)->tp_name : of;
  if (!is_among(call.name, kOfTimeZone) || !(call.module == "time" || of_class.starts_with("datetime."))) return;
  const PyRef module = imported_module("time");
  for (const char* variable : {"timezone", "altzone", "tzname", "daylight"})
    if (const PyRef name = PyRef::steal(PyUnicode_InternFromString(variable)); name && module)
      reads.attribute(module.get(), name.get());
  forget_error();
}

void note_handled_exception(const CallOfC& call, Reads& reads) {
  if (call.module != "sys" || (call.name != "exc_info" && call.name != "exception")) return;
  PyObject *type = nullptr, *value = nullptr, *trail = nullptr;
  PyErr_GetExcInfo(&type, &value, &trail);
  const PyRef owned[] = {PyRef::steal(type), PyRef::steal(value), PyRef::steal(trail)};
  const PyRef none = PyRef::steal(PyTuple_New(0));
  if (!value || value == Py_None) {
    if (none) reads.result(call.function, none.get());
  } else if (!reads.is_made_now(value)) {
    reads.keep_none("it asks for an exception that its caller handles");
  }
}

// "collections.deque": the class that defines the method, and not one of Python below it.
string_view class_of_method(PyObject* self) {
  const PyTypeObject* type = PyType_Check(self) ? reinterpret_cast<PyTypeObject*>(self) : Py_TYPE(self);
  while (type->tp_base && PyType_HasFeature(const_cast<PyTypeObject*>(type), Py_TPFLAGS_HEAPTYPE) &&
         string_view(type->tp_name).find('.') == string_view::npos)
    type = type->tp_base;
  return type->tp_name;
}

bool is_known_module(string_view module) { return is_among(module.substr(0, module.find('.')), kKnownModules); }

// The first of these things that holds is a reason to trace each call.
std::string unknown_source(const CallOfC& call, Reads& reads) {
  PyTypeObject* const of_function = Py_TYPE(call.function);
  if (is_of_this_package(of_function) || has_python_method(of_function, "__call__")) return "";
  const bool is_method = call.self && !PyModule_Check(call.self);
  if (is_method) {
    const string_view type = class_of_method(call.self);
    if (type == "_contextvars.Context" || type == "Context") return "it runs code in a context of variables";
    const bool is_stateful = std::any_of(std::begin(kStatefulClasses), std::end(kStatefulClasses),
                                         [&](string_view known) { return type.starts_with(known); });
    if (type.find('.') != string_view::npos && !is_known_module(type))
      return "it calls " + call.name + "() of " + std::string(type) + ", which may depend on more than its arguments";
    return is_stateful && !reads.is_made_now(call.self) ? "it asks for the state of a " + std::string(type) : "";
  }
  if (call.module == "_contextvars" && call.name == "copy_context") return "it copies the context of variables";
  if (call.module == "sys" && !is_among(call.name, kOfInterpreter))
    return "it calls sys." + call.name + "(), which may depend on more than its arguments";
  if (!call.module.empty() && !is_known_module(call.module))
    return "it calls " + call.name + "() of " + call.module + ", which may depend on more than its arguments";
  return "";
}

void ask_again(PyObject* function, Arguments given, Reads& reads) {
  const PyRef arguments = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(given.size())));
  for (size_t i = 0; arguments && i < given.size(); ++i)
    PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i), Py_NewRef(given[i]));
  if (arguments) reads.result(function, arguments.get());
}

void note_warning_filters(Reads& reads) {
  const PyRef warnings = imported_module("warnings");
  const PyRef filters = PyRef::steal(warnings ? PyObject_GetAttrString(warnings.get(), "filters") : nullptr);
  if (filters) reads.name(filters.get(), "warnings.filters", false), reads.content(filters.get());
  forget_error();
}

}  // namespace

void note_decimals(Arguments arguments, Reads& reads) {
  bool any = false;
  for (PyObject* argument : arguments) {
    any |= holds_decimal(argument) || is_class_of_decimals(argument);
    if (is_named(argument, "decimal.Context")) note_text_of_context(argument, reads);
  }
  if (any) note_decimal_context(reads);
}

void note_decimal_context(Reads& reads) {
  const PyRef module = imported_module("decimal");
  const PyRef getter = PyRef::steal(module ? PyObject_GetAttrString(module.get(), "getcontext") : nullptr);
  const PyRef none = PyRef::steal(PyTuple_New(0));
  const PyRef context = PyRef::steal(getter && none ? PyObject_CallObject(getter.get(), none.get()) : nullptr);
  if (context) {
    reads.result(getter.get(), none.get());
    note_text_of_context(context.get(), reads);
  }
  forget_error();
}

void note_numpy_errors(Reads& reads) {
  PyObject* modules = PyImport_GetModuleDict();
  PyObject *umath = PyDict_GetItemString(modules, "numpy._core.umath"), *numpy = PyDict_GetItemString(modules, "numpy");
  PyRef function = PyRef::steal(umath ? PyObject_GetAttrString(umath, "_get_extobj_dict") : nullptr);
  if (!function && numpy) function = PyRef::steal(PyObject_GetAttrString(numpy, "geterr"));  // before NumPy 2
  if (function) ask_again(function.get(), {}, reads);
  forget_error();
}

void note_settings(PyObject* function, const std::string& name, Arguments given, Reads& reads,
                   const Reads::Storing& at) {
  if (name == "manual_seed") reads.refuse("seeds a generator of random numbers", at, "a graph only draws from it");
  if (is_among(name, kOfThisPackage)) ask_again(function, given, reads);
  if (is_among(name, kCounters)) reads.keep_none("it asks for " + name + "()");
}

void note_hidden_state(const CallOfC& call, Reads& reads, const Reads::Storing& at) {
  if (is_among(call.name, kAskedAgain)) ask_again(call.function, call.given, reads);
  if (call.module == "_warnings") note_warning_filters(reads);
  if (call.module.starts_with("backplane")) note_settings(call.function, call.name, call.given, reads, at);
  if (is_named(call.function, "numpy.ufunc")) note_numpy_errors(reads);
  note_decimals(call.arguments, reads);
  if (call.module == "decimal" || call.module == "_decimal") note_decimal_context(reads);
  note_time_zone(call, reads);
  note_handled_exception(call, reads);
  if (at.by_library) return;  // whose hidden sources are the names above
  if (std::string why = unknown_source(call, reads); !why.empty()) reads.keep_none(std::move(why));
}

}  // namespace backplane::python
