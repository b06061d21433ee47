// How a packed call of an op begins, by its handle: read before the call is entered, when the op's entry may still be
// freed. What stands here is right for as long as the process lives, or declined by whoever it leads to.
#pragma once

#include <atomic>

#include "registry/registry.hpp"

namespace backplane::core {

// Enters the call, looks the entry up, and gives a status; of as many arguments and results as the op has. An op that
// is not of the fast path for which the function was made, as one that was registered anew meanwhile, takes the slow
// one.
using PackedCall = bp_status (*)(uint32_t op, const bp_value* args, bp_value* outs) noexcept;

struct OpEdge {
  std::atomic<PackedCall> packed{nullptr};
  int32_t n_args = 0;  // of a handle these never change
  int32_t n_results = 0;
};
// Flat, as op_slots is.
extern constinit OpEdge op_edges[kMaxOps];

// By fast path: put here by call/, in static initialisers, before the first op.
extern constinit PackedCall packed_calls[static_cast<size_t>(FastPath::kCount)];

}  // namespace backplane::core
