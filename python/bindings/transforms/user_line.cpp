#include "bindings/transforms/user_line.hpp"

namespace backplane::python {
namespace {

std::string& package_folder() {
  static auto* folder = new std::string;  // outlives whoever traces while the interpreter ends
  return *folder;
}

std::string text_of_attribute(PyObject* object) {
  const char* text = object ? PyUnicode_AsUTF8(object) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "?";
}

}  // namespace

SourceLine user_line() {
  WithGil locked;
  PyRef frame = PyRef::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* const at = reinterpret_cast<PyFrameObject*>(frame.get());
    const PyRef code = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(at)));
    auto* const parts = reinterpret_cast<PyCodeObject*>(code.get());
    std::string file = text_of_attribute(parts->co_filename);
    const std::string& ours = package_folder();
    if (ours.empty() || file.compare(0, ours.size(), ours) != 0)
      return {std::move(file), text_of_attribute(parts->co_name), PyFrame_GetLineNumber(at)};
    frame = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(at)));
  }
  return {};
}

PyObject* set_package_folder(PyObject*, PyObject* folder) {
  const char* text = PyUnicode_AsUTF8(folder);
  if (!text) return nullptr;
  package_folder() = text;
  Py_RETURN_NONE;
}

}  // namespace backplane::python
