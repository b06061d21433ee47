#include "bindings/interpreter/user_line.hpp"

#include <frameobject.h>

#include "bindings/interpreter/errors.hpp"

namespace backplane::python {
namespace {

std::string& package_folder() {
  static auto* folder = new std::string;  // outlives whoever traces while the interpreter ends
  return *folder;
}

std::string text_of_attribute(PyObject* object) {
  const char* text = object ? PyUnicode_AsUTF8(object) : nullptr;
  if (!text) forget_error();
  return text ? text : "?";
}

// Of a frame of the package: line 0.
SourceLine line_of(PyCodeObject* code, int line) {
  std::string file = text_of_attribute(code->co_filename);
  if (is_package_file(file)) return {};
  return {std::move(file), text_of_attribute(code->co_name), line};
}

}  // namespace

bool is_package_file(std::string_view file) {
  const std::string& ours = package_folder();
  return !ours.empty() && file.starts_with(ours);
}

SourceLine user_line() {
  WithGil locked;
  PyRef frame = PyRef::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* const at = reinterpret_cast<PyFrameObject*>(frame.get());
    const PyRef code = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(at)));
    SourceLine line = line_of(reinterpret_cast<PyCodeObject*>(code.get()), PyFrame_GetLineNumber(at));
    if (line.line != 0) return line;
    frame = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(at)));
  }
  return {};
}

SourceLine line_of_exception(PyObject* exception) {
  SourceLine innermost;
  PyRef trace = PyRef::steal(PyException_GetTraceback(exception));
  while (trace && PyTraceBack_Check(trace.get())) {
    auto* const at = reinterpret_cast<PyTracebackObject*>(trace.get());
    const PyRef code = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(at->tb_frame)));
    const PyRef number = PyRef::steal(PyObject_GetAttrString(trace.get(), "tb_lineno"));
    const int line = number ? static_cast<int>(PyLong_AsLong(number.get())) : 0;
    SourceLine found = line_of(reinterpret_cast<PyCodeObject*>(code.get()), line);
    if (found.line != 0) innermost = std::move(found);
    trace = PyRef::steal(PyObject_GetAttrString(trace.get(), "tb_next"));
    forget_error();
  }
  return innermost;
}

PyObject* set_package_folder(PyObject*, PyObject* folder) {
  const char* text = PyUnicode_AsUTF8(folder);
  if (!text) return nullptr;
  package_folder() = text;
  Py_RETURN_NONE;
}

}  // namespace backplane::python
