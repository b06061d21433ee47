// An owning reference to a Python object, and the two ways of giving the interpreter lock away and back.
//
// PyRef's functions need the lock. WithoutGil holds none while it lives; WithGil takes it from any thread. A thread
// that asks for the lock while the interpreter ends does not get on: interpreter_end.cpp.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

namespace backplane::python {

class PyRef {
 public:
  PyRef() = default;
  PyRef(PyRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  PyRef(const PyRef& other) noexcept : object_(other.object_) { Py_XINCREF(object_); }
  PyRef& operator=(PyRef other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(object_); }

  // Takes over a new reference, as the C API returns them; NULL is empty.
  static PyRef steal(PyObject* object) noexcept {
    PyRef ref;
    ref.object_ = object;
    return ref;
  }
  static PyRef borrow(PyObject* object) noexcept {
    Py_XINCREF(object);
    return steal(object);
  }

  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

class WithoutGil {
 public:
  WithoutGil() noexcept : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

class WithGil {
 public:
  WithGil() noexcept : state_(PyGILState_Ensure()) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Is the interpreter ending or gone? Threads other than the one that ends it no longer get its lock.
inline bool interpreter_ending() noexcept {
#if PY_VERSION_HEX >= 0x030d0000
  return !Py_IsInitialized() || Py_IsFinalizing();
#else
  return !Py_IsInitialized() || _Py_IsFinalizing();
#endif
}

// May this thread no longer touch Python objects? The main thread may while it ends the interpreter: finalizers run
// then.
bool interpreter_gone() noexcept;

}  // namespace backplane::python
