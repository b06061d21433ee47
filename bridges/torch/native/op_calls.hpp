// Ops of Backplane as operators of PyTorch: kernels for tensors of PyTorch's CPU, and for calls that are recorded.
#pragma once

#include <Python.h>

#include <string>

namespace backplane_torch {

// Registers the kernel of the operator `name` ("bp::softmax") for the CPU. `kinds` has a letter for each argument of
// the operator's schema: t a tensor, l a list of tensors, s a Scalar, b a bool, i an integer, x a text, v a list of
// integers, d a dtype; each may be absent. `raise_error(code, text)` raises the Python error of a status. The
// registration lasts as long as the process. Returns false, without a registration, for an op that is written in
// Python.
bool register_op(const std::string& name, const std::string& kinds, PyObject* raise_error);

// Registers the kernels of `name` for the keys Autograd and FuncTorchBatched. Reverse mode and vmap are programs of the
// call, whose text `describe(*constants)` gives (as of CallTexts). In forward mode `record(keys, *arguments)` is
// called.
void register_transforms(const std::string& name, const std::string& kinds, PyObject* record, PyObject* describe);

}  // namespace backplane_torch
