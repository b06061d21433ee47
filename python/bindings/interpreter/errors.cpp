// The exception classes, made from one table, and the passage of a callback's own exception through libbackplane.
#include "bindings/interpreter/errors.hpp"

#include <cstdarg>
#include <cstdio>
#include <string>

#include "backplane/op.hpp"
#include "bindings/interpreter/collector.h"
#include "bindings/interpreter/interrupts.hpp"

namespace backplane::python {
namespace {

constexpr int kStatusCount = BP_ERROR_OVERFLOW + 1;
PyObject* g_base = nullptr;
PyObject* g_classes[kStatusCount] = {};
PyObject* g_bad_index = nullptr;

struct ExceptionRow {
  bp_status code;
  const char* name;
  PyObject** builtin;
  const char* doc;
  PyObject** also = nullptr;
};

PyObject* make_class(const char* name, PyObject* bases, const char* doc) {
  std::string full = std::string("backplane.") + name;
  return PyErr_NewExceptionWithDoc(full.c_str(), doc, bases, nullptr);
}

PyObject* class_of(bp_status code) noexcept {
  if (code > BP_OK && code < kStatusCount && g_classes[code]) return g_classes[code];
  return g_base ? g_base : PyExc_RuntimeError;
}

// The exception of a callback, between the callback and the end of the call that ran it.
thread_local PyObject* t_kept_error = nullptr;

void restore_kept_error() noexcept {
  PyObject* error = std::exchange(t_kept_error, nullptr);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_DECREF(error);
}

}  // namespace

bool add_exceptions(PyObject* module) {
  const ExceptionRow rows[] = {
      {BP_ERROR_VALUE, "ArgumentValueError", &PyExc_ValueError, "An argument's value is outside its domain."},
      {BP_ERROR_TYPE, "ArgumentTypeError", &PyExc_TypeError, "An argument has the wrong kind."},
      {BP_ERROR_SHAPE, "ShapeError", &PyExc_ValueError, "Shapes do not fit."},
      {BP_ERROR_DTYPE, "DtypeError", &PyExc_TypeError, "A dtype is not accepted."},
      {BP_ERROR_INDEX, "OutOfRangeError", &PyExc_IndexError, "An index or axis is out of range."},
      {BP_ERROR_NOT_IMPLEMENTED, "MissingRuleError", &PyExc_NotImplementedError, "No rule or kernel takes the call."},
      {BP_ERROR_MEMORY, "OutOfMemoryError", &PyExc_MemoryError, "A device is out of memory."},
      {BP_ERROR_DEVICE, "DeviceError", &PyExc_RuntimeError, "A vendor's call failed; the device can still be used."},
      {BP_ERROR_DEVICE_LOST, "DeviceLostError", &PyExc_RuntimeError, "The device failed and is lost."},
      {BP_ERROR_DATA, "DataError", &PyExc_ValueError, "A kernel met bad data."},
      {BP_ERROR_VERSION, "VersionError", &PyExc_ImportError, "Contract versions do not match."},
      {BP_ERROR_BUSY, "BusyError", &PyExc_RuntimeError, "Leases or running calls use the plugin."},
      {BP_ERROR_OVERFLOW, "NumberRangeError", &PyExc_OverflowError, "A number lies outside a dtype's range.",
       &PyExc_ValueError},
      {BP_ERROR_INTERNAL, "InternalError", &PyExc_RuntimeError, "An invariant of Backplane is broken."},
  };
  // Python: class BackplaneError(Exception)
  g_base = make_class("BackplaneError", nullptr, "Every error that Backplane raises.");
  if (!g_base || PyModule_AddObjectRef(module, "BackplaneError", g_base) < 0) return false;
  for (const ExceptionRow& row : rows) {
    PyRef bases = PyRef::steal(row.also ? PyTuple_Pack(3, g_base, *row.builtin, *row.also)
                                        : PyTuple_Pack(2, g_base, *row.builtin));
    if (!bases) return false;
    g_classes[row.code] = make_class(row.name, bases.get(), row.doc);
    if (!g_classes[row.code] || PyModule_AddObjectRef(module, row.name, g_classes[row.code]) < 0) return false;
  }
  // Python: class IndexDataError(DataError, OutOfRangeError)
  // An index tensor's bad element is bad data, and out of range.
  PyRef both = PyRef::steal(PyTuple_Pack(2, g_classes[BP_ERROR_DATA], g_classes[BP_ERROR_INDEX]));
  g_bad_index =
      both ? make_class("IndexDataError", both.get(), "An element of an index tensor is out of range.") : nullptr;
  return g_bad_index && PyModule_AddObjectRef(module, "IndexDataError", g_bad_index) == 0;
}

PyObject* raise_text(bp_status code, const char* text) noexcept {
  if (code == BP_ERROR_PYTHON && t_kept_error) {
    restore_kept_error();
  } else if (PyRef message = PyRef::steal(text_of(text))) {
    PyErr_SetObject(class_of(code), message.get());
  }
  return nullptr;
}

namespace {

int raise_again(void* held) {
  // The interpreter drops what a function of gc.callbacks raises.
  if (collects_garbage() && Py_AddPendingCall(raise_again, held) == 0) return 0;
  const PyRef error = PyRef::steal(static_cast<PyObject*>(held));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  return -1;
}

}  // namespace

void forget_error() noexcept {
  if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_Exception)) return PyErr_Clear();
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  if (trace) PyException_SetTraceback(error, trace);
  if (!on_main_thread())  // by its class alone, which is what CPython offers
    PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), type);
  else if (Py_AddPendingCall(raise_again, error) == 0)
    error = nullptr;
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
}

bool has_attribute(PyObject* object, const char* name) noexcept {
  const PyRef found = PyRef::steal(PyObject_GetAttrString(object, name));
  if (!found) forget_error();
  return static_cast<bool>(found);
}

PyObject* text_of(std::string_view text) noexcept {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
}

std::string spelled(PyObject* object, PyObject* (*spell)(PyObject*)) noexcept {
  PyRef text = PyRef::steal(object ? spell(object) : nullptr);
  const char* chars = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  forget_error();
  return chars ? chars : "?";
}

PyRef found_kind(PyObject* object) noexcept {
  if (object == Py_None) return PyRef::steal(PyUnicode_FromString("None"));
  const char* name = Py_TYPE(object)->tp_name;
  if (PyUnicode_Check(object) || PyTuple_Check(object) || PyList_Check(object)) {
    PyRef text = PyRef::steal(PyObject_Repr(object));
    if (text && PyUnicode_GetLength(text.get()) <= 60) {
      return PyRef::steal(PyUnicode_FromFormat("the %s %U", name, text.get()));
    }
    forget_error();
  }
  return PyRef::steal(PyUnicode_FromFormat("a value of type %s", name));
}

PyObject* raise_status(bp_status status) noexcept { return raise_text(status, last_error()); }

PyObject* raise(bp_status code, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  PyErr_FormatV(class_of(code), format, arguments);
  va_end(arguments);
  return nullptr;
}

bool is_pending(bp_status code) noexcept { return PyErr_ExceptionMatches(class_of(code)) != 0; }

bool is_backplane_error() noexcept { return g_base && PyErr_ExceptionMatches(g_base) != 0; }

PyObject* as_bad_index() noexcept {
  if (!is_pending(BP_ERROR_DATA)) return nullptr;
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  PyErr_Format(g_bad_index, "%S", error);
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
  return nullptr;
}

void place_error(const char* op, const char* argument) noexcept {
  if (!PyErr_ExceptionMatches(g_base)) return;
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  if (argument) {
    PyErr_Format(type, "%s: argument '%s': %S", op, argument, error);
  } else {
    PyErr_Format(type, "%s: %S", op, error);
  }
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
}

Error keep_python_error() noexcept {
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  if (trace && error) PyException_SetTraceback(error, trace);
  PyRef text = PyRef::steal(error ? PyObject_Str(error) : nullptr);
  const char* message = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  Error result(BP_ERROR_PYTHON, message ? message : "a Python callback failed");
  forget_error();
  Py_XDECREF(type);
  Py_XDECREF(trace);
  Py_XSETREF(t_kept_error, error);
  return result;
}

}  // namespace backplane::python
