// How failures reach Python: each status of the contract is an exception class under BackplaneError that also is the
// built-in exception that a Python user expects (ShapeError is a ValueError).
//
// All functions need the interpreter lock, set the thread's Python error and return nullptr, so that callers can write
// `return raise(...)`.
#pragma once

#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include "backplane/error.hpp"
#include "bindings/interpreter/context_settings.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// Creates the classes and adds them to `module`. False: a Python error is set.
bool add_exceptions(PyObject* module);

// The status that a call into libbackplane returned; the text is this thread's last_error().
PyObject* raise_status(bp_status status) noexcept;
// `format` as PyUnicode_FromFormat reads it.
PyObject* raise(bp_status code, const char* format, ...) noexcept;
PyObject* raise_text(bp_status code, const char* text) noexcept;

// A text that may hold the bytes of somebody's file: those that are not UTF-8 stand as escapes.
PyObject* text_of(std::string_view text) noexcept;

// An object as Python spells it; "?" for nullptr, or if that fails.
std::string spelled(PyObject* object, PyObject* (*spell)(PyObject*) = PyObject_Repr) noexcept;

// A description of the object's kind: "a str", "a Tensor", "None".
PyRef found_kind(PyObject* object) noexcept;

// Clears the pending error, if any, of an attempt. An error that is not an Exception (KeyboardInterrupt,
// SystemExit) is for the program: it is raised again when the interpreter next looks for signals.
void forget_error() noexcept;
bool has_attribute(PyObject* object, const char* name) noexcept;

// Is the pending Python error of this status's class, or of one below it?
bool is_pending(bp_status code) noexcept;
// Is the pending error from this package?
bool is_backplane_error() noexcept;

// The pending error of an op that takes positions alone as data is an IndexError too where it is about data.
PyObject* as_bad_index() noexcept;

// Puts the op's name, and the argument's where it is known, before the text of the pending error, if that is one of
// ours.
void place_error(const char* op, const char* argument) noexcept;

// Keeps the pending Python error of a callback for the raise_status(BP_ERROR_PYTHON) that ends the call; returns its
// text as an Error to throw through libbackplane.
Error keep_python_error() noexcept;

// Runs `body`, turning C++ exceptions into Python errors. The failure value is nullptr or -1 by the result's type.
// Where `body` itself sees to the context's settings, as calls of ops do.
template <class Body>
auto guarded_call(Body&& body) noexcept -> std::invoke_result_t<Body> {
  using Result = std::invoke_result_t<Body>;
  try {
    return body();
  } catch (const Error& error) {
    raise_text(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    raise_text(BP_ERROR_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    raise_text(BP_ERROR_INTERNAL, error.what());
  }
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return static_cast<Result>(-1);
  }
}
// For all other entries from Python.
template <class Body>
auto guarded(Body&& body) noexcept -> std::invoke_result_t<Body> {
  use_context_settings();
  return guarded_call(static_cast<Body&&>(body));
}

}  // namespace backplane::python
