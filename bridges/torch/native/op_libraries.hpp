// The libraries of PyTorch in which kernels of ops are registered.
#pragma once

#include <torch/library.h>

#include <string>

namespace backplane_torch {

// The library of a namespace and a key; it lives as long as the process. Under the interpreter's lock.
torch::Library& op_library(const std::string& space, c10::DispatchKey key);

}  // namespace backplane_torch
