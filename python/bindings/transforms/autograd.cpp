// Differentiation as methods of Tensor: backward, detach, requires_grad, grad.
//
// backward runs without the interpreter lock; hooks (bind_autograd.cpp) take it back.
#include "backplane/autograd.hpp"
#include "backplane/transforms.hpp"

#include "bindings/tensor/slots.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bindings/tensor/tensor_slots.hpp"
#include "bindings/transforms/tape.hpp"

namespace backplane::python {
namespace {

// A setter's object: a Tensor, or None for an empty one.
bool read_optional_tensor(PyObject* object, const char* what, Tensor* tensor) {
  if (object == nullptr || object == Py_None) return true;
  if (!is_tensor(object)) {
    raise(BP_ERROR_TYPE, "%s: found a value of type %s, expected a Tensor or None", what, Py_TYPE(object)->tp_name);
    return false;
  }
  *tensor = tensor_of(object);
  return true;
}

int set_wanted(PyObject* self, bool wanted) {
  if (every_call_taken()) return put_requires_grad_in_trace(tensor_of(self), wanted);
  return guarded([&] {
    set_requires_grad(tensor_of(self), wanted);
    return 0;
  });
}

}  // namespace

PyObject* tensor_backward(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"gradient", "retain_graph", "create_graph", nullptr};
  PyObject* gradient = nullptr;
  int retain_graph = 0, create_graph = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Opp:backward", const_cast<char**>(keywords), &gradient,
                                   &retain_graph, &create_graph)) {
    return nullptr;
  }
  Tensor cotangent;
  if (!read_optional_tensor(gradient, "backward: argument gradient", &cotangent)) return nullptr;
  if (every_call_taken()) return backward_in_trace(tensor_of(self), cotangent, retain_graph != 0, create_graph != 0);
  return guarded([&] {
    const Tensor root = tensor_of(self);
    {
      WithoutGil unlocked;
      backward({&root, 1}, {&cotangent, 1}, {retain_graph != 0, create_graph != 0});
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* tensor_detach(PyObject* self, PyObject*) {
  if (!(handle_of(self)->flags & BP_TENSOR_WRAPPER))
    return guarded([&] { return wrap_tensor(detach(tensor_of(self))); });
  const OpHandle op = require_op(Slot::StopGradient);
  const bp_value arg = tensor_value(handle_of(self));
  return op == BP_NO_OP ? nullptr : call_to_tensor(op, &arg, 1);
}

PyObject* tensor_get_requires_grad(PyObject* self, void*) {
  const Tensor tensor = tensor_of(self);
  return PyBool_FromLong(requires_grad(tensor) || (every_call_taken() && is_leaf_in_trace(tensor)));
}

int tensor_put_requires_grad(PyObject* self, PyObject* wanted, void*) {
  if (!wanted || !PyBool_Check(wanted)) {
    raise(BP_ERROR_TYPE, "requires_grad: found a value of type %s, expected a bool",
          wanted ? Py_TYPE(wanted)->tp_name : "(deleted)");
    return -1;
  }
  return set_wanted(self, wanted == Py_True);
}

PyObject* tensor_set_requires_grad(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"wanted", nullptr};
  int wanted = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:requires_grad_", const_cast<char**>(keywords), &wanted))
    return nullptr;
  return set_wanted(self, wanted != 0) < 0 ? nullptr : Py_NewRef(self);
}

PyObject* tensor_get_grad(PyObject* self, void*) {
  if (every_call_taken()) return grad_in_trace(tensor_of(self));
  return guarded([&] {
    Tensor grad = grad_of(tensor_of(self));
    if (grad) track_tensor(self);
    return grad ? wrap_tensor(std::move(grad)) : Py_NewRef(Py_None);
  });
}

int tensor_put_grad(PyObject* self, PyObject* grad, void*) {
  Tensor tensor;
  if (!read_optional_tensor(grad, "grad", &tensor)) return -1;
  if (every_call_taken()) return put_grad_in_trace(tensor_of(self), tensor);
  return guarded([&] {
    set_grad_of(tensor_of(self), tensor);
    if (tensor) track_tensor(self);
    return 0;
  });
}

PyObject* tensor_is_leaf(PyObject* self, void*) { return PyBool_FromLong(is_leaf(tensor_of(self))); }
PyObject* tensor_version(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(version_of(tensor_of(self))); }

PyObject* tensor_node_name(PyObject* self, void*) {
  const char* name = node_name(tensor_of(self));
  return *name ? PyUnicode_FromString(name) : Py_NewRef(Py_None);
}

}  // namespace backplane::python
