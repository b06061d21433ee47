#include "bindings/guards/code_files.hpp"

#include <frameobject.h>

#include <string_view>

#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/interpreter/user_line.hpp"

namespace backplane::python {
namespace {

// Where the interpreter's own modules lie; those that users install lie below.
const std::string& library_folder() {
  static const auto* folder = [] {
    const PyRef module = imported_module("os");
    const PyRef file = PyRef::steal(module ? PyObject_GetAttrString(module.get(), "__file__") : nullptr);
    forget_error();
    const std::string path = text_of_object(file.get());
    return new std::string(path.substr(0, path.find_last_of("/\\") + 1));
  }();
  return *folder;
}

}  // namespace

std::string text_of_object(PyObject* object) {
  const char* text = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : nullptr;
  if (!text) forget_error();
  return text ? text : "";
}

bool is_opaque_code(const std::string& file, const std::string& function) {
  if (file.starts_with("<frozen importlib") || file.starts_with("<frozen zipimport")) return true;
  const std::string& folder = library_folder();
  if (folder.empty() || !file.starts_with(folder)) return false;
  const std::string_view rest = std::string_view(file).substr(folder.size());
  return rest == "traceback.py" || rest == "warnings.py" || (rest == "logging/__init__.py" && function == "_log");
}

bool is_library_file(const std::string& file) {
  const std::string& folder = library_folder();
  return file.starts_with("<frozen ") ||
         (!folder.empty() && file.starts_with(folder) && file.find("-packages") == std::string::npos);
}

bool is_stateful_file(const std::string& file) {
  const size_t at = file.rfind("/backplane/");
  if (!is_package_file(file) || at == std::string::npos) return false;
  for (const char* part :
       {"/backplane/nn/modules/", "/backplane/nn/utils/", "/backplane/optim/", "/backplane/distributions/",
        "/backplane/sparse.py", "/backplane/data/transforms.py", "/backplane/_graphs/_compiled_state.py"})
    if (file.compare(at, std::char_traits<char>::length(part), part) == 0) return true;
  return false;
}

std::string user_line_of(PyObject* frame) {
  PyRef up = PyRef::borrow(frame);
  std::string line;
  while (up.get()) {
    auto* const at = reinterpret_cast<PyFrameObject*>(up.get());
    const PyRef own = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(at)));
    const std::string file = text_of_object(reinterpret_cast<PyCodeObject*>(own.get())->co_filename);
    const bool is_users = !is_library_file(file) && !is_package_file(file);
    if (line.empty() || is_users) line = file + ":" + std::to_string(PyFrame_GetLineNumber(at));
    if (is_users && file.find("-packages") == std::string::npos) break;
    up = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(at)));
  }
  return line;
}

}  // namespace backplane::python
