// backward() and .grad inside of a compiled function with state=.
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "backplane/tensor.hpp"

namespace backplane::python {

// What the methods of Tensor do while a trace takes every call. They set an error where that is refused.
PyObject* backward_in_trace(const Tensor& root, const Tensor& cotangent, bool retain_graph, bool create_graph);
std::vector<Tensor> gradients_in_trace(const std::vector<Tensor>& roots, const std::vector<Tensor>& cotangents,
                                       const std::vector<Tensor>& inputs, bool retain_graph, bool create_graph);
bool is_leaf_in_trace(const Tensor& tensor);
int put_requires_grad_in_trace(const Tensor& tensor, bool wanted);
PyObject* grad_in_trace(const Tensor& tensor);
int put_grad_in_trace(const Tensor& tensor, const Tensor& grad);

void bind_tape(pybind11::module_& module);

}  // namespace backplane::python
