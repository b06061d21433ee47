// A region's compute shader: the functions of shaders/region.comp that its program calls, and a body for its loop.
#pragma once

#include "fuse/layout.hpp"
#include "runtime/stream.hpp"

namespace backplane::vulkan {

// What such a shader is given: an address per operand, then the bits of each number, in slots of 8 bytes.
inline size_t slots_of(bp_dtype number) { return number == BP_COMPLEX128 ? 2 : 1; }
inline size_t slots_of(const plugin::FusedProgram& program) {
  size_t slots = program.loads.size() + program.stores.size();
  for (const plugin::FusedNumber& number : program.numbers) slots += slots_of(number.dtype);
  return slots;
}

// The push constants. Where there are more slots, all of them stand in the table.
inline constexpr size_t kPushed = 14;
struct RegionPush {
  uint64_t table = 0;
  uint32_t count = 0;
  uint32_t skipped = 0;  // bytes of the table before the layout's rows
  std::array<uint64_t, kPushed> at{};
};
static_assert(sizeof(RegionPush) == kPushBytes);

// The words of a SPIR-V module. `float64`: does the device compute doubles?
std::vector<uint32_t> link_region(const plugin::FusedProgram& program, const Layout& layout, bool float64);

}  // namespace backplane::vulkan
