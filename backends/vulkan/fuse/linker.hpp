// A region's compute shader: the functions of shaders/region.comp, or with rows of region_rows.comp, that its program
// calls, and a body for its loop.
#pragma once

#include "backplane/plugin/fused_passes.hpp"
#include "fuse/layout.hpp"

namespace backplane::vulkan {

// The words of a SPIR-V module. `float64`: does the device compute doubles?
std::vector<uint32_t> link_region(const plugin::FusedProgram& program, const Layout& layout, bool float64);
std::vector<uint32_t> link_rows(const plugin::FusedProgram& program, const plugin::FusedPasses& passes,
                                const RowLayout& layout, bool float64);

}  // namespace backplane::vulkan
