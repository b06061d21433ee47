// Values of PyTorch's stack as Python objects of Backplane, and back. All functions need the interpreter lock.
#pragma once

#include <Python.h>

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <string>
#include <utility>

#include "device_tensors.hpp"

namespace backplane_torch {

// One reference to a Python object.
class Object {
 public:
  Object() = default;
  explicit Object(PyObject* owned) noexcept : object_(owned) {}
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }
  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

class Interpreter {
 public:
  Interpreter() : state_(PyGILState_Ensure()) {}
  ~Interpreter() { PyGILState_Release(state_); }
  Interpreter(const Interpreter&) = delete;

 private:
  PyGILState_STATE state_;
};

// `tools`: (tensor_handle, tensor_from_handle, dtypes by number, errors after which the host may compute an op).
bool set_python_tools(PyObject* tools);

// What an argument becomes. 't': the value; 'd': a dtype; 'n': None, a row does not choose where results lie.
Object python_value(const c10::IValue& value, char kind, bp_device device);
// Tensors over the storage of an argument are copied, so that a result never shares memory with it.
c10::IValue torch_value(PyObject* result, const c10::TypePtr& type, const torch::jit::Stack& stack, size_t first);
backplane::Tensor result_of(PyObject* tensor);
Object tensor_object(const backplane::Tensor& tensor);

// Throws the current Python error, as PyTorch's of that kind.
[[noreturn]] void throw_python_error(const std::string& place);
// Is the current Python error one after which the host may compute the op? Then it is cleared.
bool take_refusal();

}  // namespace backplane_torch
