// Ops whose calls do something that no result shows, as collectives do: tag `collective`. A graph keeps their order,
// and neither merges, drops, repeats nor computes them ahead of time.
#pragma once

#include <cstdint>

namespace backplane::core {

// Beside BP_OP_* and those of registry.hpp, in OpEntry::flags.
inline constexpr uint64_t kOrdered = uint64_t{1} << 57;

// Ops that are run for more than their results: tag `effect`. A graph keeps their calls, and computes none ahead of
// time.
inline constexpr uint64_t kHasEffect = uint64_t{1} << 56;

}  // namespace backplane::core
