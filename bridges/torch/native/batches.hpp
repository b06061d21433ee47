// Calls of operators under torch.func.vmap.
#pragma once

#include <torch/library.h>

#include "call_programs.hpp"

namespace backplane_torch {

// A kernel for the key FuncTorchBatched: it runs the program of the batched call on the tensors below the level of
// vmap.
torch::CppFunction batch_kernel(size_t n_args, CallTexts& texts);

}  // namespace backplane_torch
