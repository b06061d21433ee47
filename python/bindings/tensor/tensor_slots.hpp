// The parts of the Tensor type: each file appends its own slots of the type.
#pragma once

#include <vector>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

void append_number_slots(std::vector<PyType_Slot>& slots);     // numbers.cpp
void append_index_slots(std::vector<PyType_Slot>& slots);      // indexing.cpp
void append_attribute_slots(std::vector<PyType_Slot>& slots);  // attributes.cpp
bool add_count_type() noexcept;                                // attributes.cpp: of x.size; before the first tensor
void append_buffer_slots(std::vector<PyType_Slot>& slots);     // buffer.cpp

// x[key] and x[key] = value, and the length of the first axis.
PyObject* get_item(PyObject* self, PyObject* key);             // indexing.cpp
int set_item(PyObject* self, PyObject* key, PyObject* value);  // indexing.cpp

// Methods outside the registry, each with CPython's METH_* convention in the comment.
PyObject* tensor_item(PyObject* self, PyObject* const* args, Py_ssize_t n_args);       // FASTCALL, scalars.cpp
PyObject* tensor_tolist(PyObject* self, PyObject*);                                    // NOARGS, scalars.cpp
PyObject* tensor_dlpack(PyObject* self, PyObject* args, PyObject* kwargs);             // KEYWORDS, dlpack.cpp
PyObject* tensor_dlpack_device(PyObject* self, PyObject*);                             // NOARGS, dlpack.cpp
PyObject* tensor_backward(PyObject* self, PyObject* args, PyObject* kwargs);           // KEYWORDS, autograd.cpp
PyObject* tensor_detach(PyObject* self, PyObject*);                                    // NOARGS, autograd.cpp
PyObject* tensor_set_requires_grad(PyObject* self, PyObject* args, PyObject* kwargs);  // KEYWORDS, autograd.cpp
PyObject* tensor_get_requires_grad(PyObject* self, void*);                             // autograd.cpp
int tensor_put_requires_grad(PyObject* self, PyObject* wanted, void*);                 // autograd.cpp
PyObject* tensor_get_grad(PyObject* self, void*);                                      // autograd.cpp
int tensor_put_grad(PyObject* self, PyObject* grad, void*);                            // autograd.cpp
PyObject* tensor_is_leaf(PyObject* self, void*);                                       // autograd.cpp
PyObject* tensor_version(PyObject* self, void*);                                       // autograd.cpp
PyObject* tensor_node_name(PyObject* self, void*);                                     // autograd.cpp

}  // namespace backplane::python
