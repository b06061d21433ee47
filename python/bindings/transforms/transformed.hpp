// The functions that grad, value_and_grad and vmap return: one Python type, which calls a transform's code with the
// user's function and looks like that function (name, doc, attributes, binding as a method).
//
// Copying and pickling follow the function: a plain one is itself, and found by its name; a method of an object that is
// copied is the copy's. A Transformed holds a reference to the function and owns the transform's options. Calls may
// come from any thread that holds the interpreter lock.
#pragma once

#include <memory>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

struct TransformOptions {
  virtual ~TransformOptions() = default;
  // The same, without what calls have left in them.
  virtual std::unique_ptr<TransformOptions> clone() const = 0;
  // For the garbage collector: the Python objects that they hold, and letting go of them.
  virtual int traverse(visitproc, void*) const { return 0; }
  virtual void clear() {}
};

// A call of the transformed function, as vectorcall gives it. `name` is the transform's, for messages.
struct TransformCall {
  const char* name;
  PyObject* function;  // the user's
  PyObject* const* args;
  Py_ssize_t n_args;
  PyObject* keywords;  // a tuple of names, or nullptr

  Py_ssize_t n_keywords() const noexcept { return keywords ? PyTuple_GET_SIZE(keywords) : 0; }
};
using TransformBody = PyObject* (*)(const TransformCall& call, const TransformOptions& options);

// The function `name`(function); an error names the transform where `function` cannot be called.
PyObject* make_transformed(const char* name, PyObject* function, TransformBody body,
                           std::unique_ptr<TransformOptions> options);

// "grad: argument fun: found …" where it is not callable.
bool check_callable(const char* name, PyObject* function);

// The lasting spelling of a transform that Python composes, else `other`.
const char* transform_name(PyObject* name, const char* other);

bool add_transformed_type(PyObject* module);

// The doors of the transforms, each in its own file, as METH_VARARGS | METH_KEYWORDS or METH_FASTCALL | METH_KEYWORDS.
PyObject* grad_function(PyObject* module, PyObject* args, PyObject* kwargs);                            // grad.cpp
PyObject* value_and_grad_function(PyObject* module, PyObject* args, PyObject* kwargs);                  // grad.cpp
PyObject* vmap_function(PyObject* module, PyObject* args, PyObject* kwargs);                            // vmap.cpp
PyObject* vjp_function(PyObject* module, PyObject* const* args, Py_ssize_t count, PyObject* keywords);  // vjp.cpp
PyObject* jvp_function(PyObject* module, PyObject* args, PyObject* kwargs);                             // jvp.cpp
// The same for jacrev and jacfwd, under their own name in messages: (name, fun, primals[, tangents], has_aux).
PyObject* vjp_as_function(PyObject* module, PyObject* args);  // vjp.cpp
PyObject* jvp_as_function(PyObject* module, PyObject* args);  // jvp.cpp
bool add_pullback_type();                                     // vjp.cpp

// All of these, with their documentation, into the module. transforms.cpp
bool add_transforms(PyObject* module);

}  // namespace backplane::python
