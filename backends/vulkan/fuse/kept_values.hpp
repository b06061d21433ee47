// The values that a lane computes in each pass over its part of a row, and those that it keeps for the next. If a lane
// has few elements, values that a later pass needs stay in registers; else that pass computes them again.
#pragma once

#include <cstdint>
#include <vector>

#include "backplane/plugin/fused_passes.hpp"

namespace backplane::vulkan {

struct LanePass {
  std::vector<size_t> loads, calls;  // positions in the program's lists
  std::vector<uint32_t> known;       // variables that an earlier pass has kept, and this one needs
  std::vector<uint32_t> kept;        // those that this one computes, and a later one needs
};

std::vector<LanePass> lane_passes(const plugin::FusedProgram& program, const plugin::FusedPasses& passes, bool keeps);

}  // namespace backplane::vulkan
