#include "bindings/guards/changing_calls.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"

namespace backplane::python {
namespace {

using std::string_view;

// Modules whose functions give something else at each call, but for those of these names.
struct Changing {
  string_view module, what;
  std::array<string_view, 8> harmless = {};
};
constexpr Changing kChanging[] = {
    {"time", "reads a clock", {"sleep", "strptime", "struct_time", "mktime"}},
    {"posix", "asks the operating system", {"fspath", "_path_normpath", "DirEntry", "strerror", "WEXITSTATUS"}},
    {"nt", "asks the operating system", {"fspath", "_path_normpath", "DirEntry"}},
    {"_socket", "asks the network", {}},
    {"_ssl", "asks the network", {}},
    {"_sqlite3", "asks a database", {}},
    {"select", "asks the operating system", {}},
    {"_posixsubprocess", "starts a process", {}},
    {"_queue", "takes from a queue", {}},
    {"_uuid", "makes an identifier that is new each time", {}},
    {"resource", "asks the operating system", {}},
    {"mmap", "reads a file", {}},
    {"gc", "asks the garbage collector", {"collect", "freeze"}},
};

// Single functions, wherever they are defined.
constexpr std::pair<string_view, string_view> kChangingNames[] = {
    {"builtins.input", "reads from the keyboard"},
    {"builtins.open", "opens a file"},
    {"_io.open", "opens a file"},
    {"io.open", "opens a file"},
    {"io.open_code", "opens a file"},
    {"_thread.start_new_thread", "starts a thread, whose code is not watched"},
    {"_thread.start_joinable_thread", "starts a thread, whose code is not watched"},
    {"_thread.stack_size", "asks for a setting of threads"},
    {"atexit.register", "registers a function that runs at the exit"},
    {"atexit.unregister", "removes a function that runs at the exit"},
    {"sys.addaudithook", "registers a hook of the interpreter"},
    {"_signal.signal", "sets a handler of signals"},
    {"_signal.setitimer", "sets a timer"},
    {"_signal.alarm", "sets a timer"},
    {"sys.getrefcount", "counts references"},
    {"sys._current_frames", "inspects other threads"},
    {"sys._getframe", "inspects the frames of callers"},
    {"sys.gettrace", "asks for the trace function, which belongs to the compiler during a trace"},
};

bool is_clock_of_datetime(PyObject* function, string_view name) {
  if (name != "now" && name != "utcnow" && name != "today") return false;
  PyObject* self = PyCFunction_Check(function) ? PyCFunction_GET_SELF(function) : nullptr;
  return self && PyType_Check(self) && text_of_attribute(self, "__module__") == "datetime";
}

// "_sqlite3" has the classes of "sqlite3".
bool is_module_of(string_view module, string_view of_class) {
  return !of_class.empty() && (of_class == module || (module.starts_with('_') && of_class == module.substr(1)));
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
  return name.starts_with("_io.") && name != "_io.StringIO" && name != "_io.BytesIO" && !is_for_messages(self);
}

}  // namespace

std::string text_of_attribute(PyObject* object, const char* name) {
  const PyRef value = PyRef::steal(PyObject_GetAttrString(object, name));
  const char* text = value && PyUnicode_Check(value.get()) ? PyUnicode_AsUTF8(value.get()) : nullptr;
  forget_error();
  return text ? text : "";
}

std::string changing_call(PyObject* function, PyObject* self, const std::string& name, Reads& reads,
                          const Reads::Storing& at) {
  if (is_clock_of_datetime(function, name)) return "reads a clock";
  const std::string module = text_of_attribute(function, "__module__"), whole = module + "." + name;
  for (const auto& [known, what] : kChangingNames)
    if (whole == known && !(at.by_library && (name == "_getframe" || name == "gettrace"))) return std::string(what);
  const bool is_method = self && !PyModule_Check(self);
  const std::string of_self =
      is_method ? text_of_attribute(reinterpret_cast<PyObject*>(Py_TYPE(self)), "__module__") : "";
  for (const Changing& one : kChanging)
    if ((module == one.module || is_module_of(one.module, of_self)) &&
        std::find(one.harmless.begin(), one.harmless.end(), name) == one.harmless.end())
      return std::string(one.what);
  if (!is_method) return "";
  if (is_random_state(self)) reads.uses_up(self, "draws from a random generator from outside", at);
  if (is_file(self)) return "reads or writes a file";
  return "";
}

bool is_for_messages(PyObject* file) {
  for (const char* name : {"stdout", "stderr"})
    if (PySys_GetObject(name) == file) return true;
  return false;
}

}  // namespace backplane::python
