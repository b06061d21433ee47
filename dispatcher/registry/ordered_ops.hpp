// Ops whose calls do something that no result shows: tags `collective`, for calls that need the other ranks of a
// program, and `effect`, for calls that print or tell the program something. A graph keeps their order, and neither
// merges, drops, repeats nor computes them ahead of time.
#pragma once

#include <cstdint>

namespace backplane::core {

// Beside BP_OP_* and those of registry.hpp, in OpEntry::flags.
inline constexpr uint64_t kOrdered = uint64_t{1} << 57;

}  // namespace backplane::core
