// Python objects that are held from C++, by hooks and by functions in a history, on threads with or without the
// interpreter lock; and the way of the garbage collector from a tensor to them.
#pragma once

#include <memory>

#include "backplane/autograd.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// An object that any thread may let go of: the last takes the lock. Empty once the collector has dropped it.
class HeldObject {
 public:
  explicit HeldObject(PyRef object) noexcept : object_(object.release()) {}
  ~HeldObject();
  HeldObject(const HeldObject&) = delete;
  HeldObject& operator=(const HeldObject&) = delete;

  // With the lock.
  PyObject* get() const noexcept { return object_; }
  void drop() noexcept { Py_CLEAR(object_); }

 private:
  PyObject* object_;
};
inline std::shared_ptr<HeldObject> held(PyRef object) { return std::make_shared<HeldObject>(std::move(object)); }

// A Python callable as a Hook. Once the collector has dropped it, it does nothing.
class PythonHook {
 public:
  explicit PythonHook(PyRef function) : function_(held(std::move(function))) {}
  Tensor operator()(const Tensor& cotangent) const;
  const std::shared_ptr<HeldObject>& function() const noexcept { return function_; }

 private:
  std::shared_ptr<HeldObject> function_;
};

// Those that live as long as the tensor alone, whose one reference is its Python object's: what tp_traverse and
// tp_clear do.
int visit_owned_objects(const bp_tensor* tensor, visitproc visit, void* arg);
void drop_owned_objects(const bp_tensor* tensor) noexcept;

// graph_function.cpp: the callables of a function that was made there, else nullptr.
const std::shared_ptr<HeldObject>* callables_of(const GraphFunction& function) noexcept;

}  // namespace backplane::python
