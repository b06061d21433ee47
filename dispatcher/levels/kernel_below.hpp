// Would a kernel compute the call, under all levels? What asks is a rule that could take the call apart instead.
#pragma once

#include "levels/level.hpp"

namespace backplane::core {

// `level`: the one that asks; nullptr: the tape. False also where another level on the way, or a graph that is being
// written, would take the call apart; for random numbers and shapes that depend on values; and unless every result is a
// new tensor.
bool kernel_below(const Level* level, const Call& call);

}  // namespace backplane::core
