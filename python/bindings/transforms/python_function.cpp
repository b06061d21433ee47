#include "bindings/transforms/python_function.hpp"

#include "bindings/interpreter/errors.hpp"

namespace backplane::python {

PyRef python_function(PyObject* callable, Py_ssize_t* position) {
  PyRef function = PyRef::borrow(callable);
  for (int depth = 0; depth < 100; ++depth) {
    if (PyMethod_Check(function.get())) {
      if (position) ++*position;
      function = PyRef::borrow(PyMethod_GET_FUNCTION(function.get()));
      continue;
    }
    PyRef inner = PyRef::steal(PyObject_GetAttrString(function.get(), "__wrapped__"));
    if (!inner && !has_attribute(function.get(), "__code__")) {
      inner = PyRef::steal(PyObject_GetAttrString(function.get(), "__call__"));
      if (inner && !PyMethod_Check(inner.get())) inner = PyRef{};
    }
    forget_error();
    if (!inner) break;
    function = std::move(inner);
  }
  return function;
}

}  // namespace backplane::python
