// Special registers and the addresses that a launch decides; see special.hpp.
#include "special.hpp"

namespace emulator {
namespace {

template <class Value>
void fill(Warp& warp, const Instruction& instruction, Value value) {
  uint64_t* out = warp.column(instruction.out[0]);
  each_lane(warp.mask(), [&](int lane) { out[lane] = value(lane); });
}
uint32_t dimension(const Extent& extent, char axis) {
  return axis == 'x' ? extent.x : axis == 'y' ? extent.y : extent.z;
}

template <char kAxis>
void thread_index(Warp& warp, const Instruction& instruction) {
  const Extent& size = warp.block().launch.block;
  fill(warp, instruction, [&](int lane) {
    const uint32_t i = warp.lane_thread(lane);
    return kAxis == 'x' ? i % size.x : kAxis == 'y' ? i / size.x % size.y : i / size.x / size.y;
  });
}
template <char kAxis>
void block_size(Warp& warp, const Instruction& instruction) {
  fill(warp, instruction, [&](int) { return dimension(warp.block().launch.block, kAxis); });
}
template <char kAxis>
void block_index(Warp& warp, const Instruction& instruction) {
  fill(warp, instruction, [&](int) { return dimension(warp.block().index, kAxis); });
}
template <char kAxis>
void grid_size(Warp& warp, const Instruction& instruction) {
  fill(warp, instruction, [&](int) { return dimension(warp.block().launch.grid, kAxis); });
}
void lane_index(Warp& warp, const Instruction& instruction) {
  fill(warp, instruction, [](int lane) { return static_cast<uint64_t>(lane); });
}

}  // namespace

const Handlers& special_registers() {
  static const Handlers table = {
      {"%tid.x", thread_index<'x'>},  {"%tid.y", thread_index<'y'>},  {"%tid.z", thread_index<'z'>},
      {"%ntid.x", block_size<'x'>},   {"%ntid.y", block_size<'y'>},   {"%ntid.z", block_size<'z'>},
      {"%ctaid.x", block_index<'x'>}, {"%ctaid.y", block_index<'y'>}, {"%ctaid.z", block_index<'z'>},
      {"%nctaid.x", grid_size<'x'>},  {"%nctaid.y", grid_size<'y'>},  {"%nctaid.z", grid_size<'z'>},
      {"%laneid", lane_index}};
  return table;
}

void parameter_address(Warp& warp, const Instruction& instruction) {
  const uint64_t first = reinterpret_cast<uint64_t>(warp.block().launch.parameters.data());
  fill(warp, instruction, [&](int) { return first + static_cast<uint64_t>(instruction.offset); });
}
void local_address(Warp& warp, const Instruction& instruction) {
  fill(warp, instruction, [&](int) { return warp.local_base() + static_cast<uint64_t>(instruction.offset); });
}

}  // namespace emulator
