// Autocast: a thread's calls run in half floats where that is safe, by what the entries of their ops say.
//
// An op with the tag `autocast:half` (products, convolutions) gets its floating arguments in the block's dtype, and an
// op with the tag `autocast:float32` (exp, sums, norms, losses) in float32. Other ops take their arguments unchanged.
// Calls from outside of the core are cast, and the parts of composites. Formulas of derivatives and batch rules are
// not, and the nodes of a graph contain the casts of their trace. Calls into given outputs and of float64 are left
// alone.
#pragma once

#include <cstdint>
#include <optional>

#include "backplane/abi/value.h"
#include "backplane/tensor.hpp"

namespace backplane {

struct Autocast {
  bp_dtype dtype = BP_BFLOAT16;     // float16 or bfloat16; BP_DTYPE_NONE: off
  std::optional<uint32_t> backend;  // calls on its devices alone
  bool operator==(const Autocast&) const = default;
};

// The calling thread's.
BACKPLANE_API Autocast autocast() noexcept;
// Returns the old one.
BACKPLANE_API Autocast set_autocast(Autocast wanted) noexcept;

}  // namespace backplane
