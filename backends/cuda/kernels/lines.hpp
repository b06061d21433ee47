// How much of a line a thread of its block holds; the same text for nvcc and for the host's compiler.
#pragma once

#include "runtime/arguments.hpp"

namespace backplane::cuda {

constexpr int kHeldElements = 8;  // of a line that moves by elements; else kHeldPacks packs

}  // namespace backplane::cuda
