// What objects of Python hold: their elements, copies of these, and whether a tensor is among them.
//
// All functions need the interpreter lock, and leave no Python error.
#pragma once

#include <functional>
#include <unordered_set>
#include <vector>

#include "bindings/interpreter/py_ref.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

// Of a class that Python code made, or a SimpleNamespace.
bool is_instance(PyObject* object);
// A dict, list, tuple, set or deque, or of a subclass.
bool is_container(PyObject* object);
// A bytearray, or an array of the module array.
bool is_buffer(PyObject* object);

// A new list of the elements of a list, tuple, set or deque, a dict's copy as a dict; empty for everything else.
PyRef copied_elements(PyObject* object);

// Does `wanted` hold for the object, or a tensor that it leads to? Looked at is what the garbage collector sees of it:
// elements, attributes, variables of functions and generators; not modules and classes.
bool leads_to_tensor(PyObject* object, const std::function<bool(const Tensor&)>& wanted);
// The same of a traced number (bindings/tensor/number_hook.hpp).
bool leads_to_number(PyObject* object);
// The same for a tensor of a transform, which is invalid once the transform has ended.
bool leads_to_traced(PyObject* object);
// Adds the object and its contents, as `leads_to_tensor` looks at them.
void add_contents(PyObject* object, std::unordered_set<PyObject*>* contents);

// Calls visit(object) once for each of `roots` and of their contents. It skips the contents of an object for which
// `visit` returns false.
void visit_contents(const std::vector<PyObject*>& roots, const std::function<bool(PyObject*)>& visit);

// Do two lists hold the same objects in the same order, or two dicts under the same keys?
bool is_same_content(PyObject* a, PyObject* b);

// changed_contents(pairs): which of the pairs (dict or list, its copy) no longer hold the same objects under the same
// keys in the same order, by their places. Other pairs count as changed.
PyObject* changed_contents(PyObject* module, PyObject* pairs);

}  // namespace backplane::python
