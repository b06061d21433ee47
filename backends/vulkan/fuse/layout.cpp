// An operand that is contiguous along the joined axes needs no rows.
#include "fuse/layout.hpp"

#include <bit>

namespace backplane::vulkan {
namespace {

using Axes = std::vector<plugin::FusedAxis>;

// Do the elements follow each other, `step` apart?
bool follow(const Axes& axes, size_t operand, int64_t step) {
  for (const plugin::FusedAxis& axis : axes) {
    if (axis.strides[operand] != step) return false;
    step *= axis.size;
  }
  return true;
}
bool is_one(const Axes& axes, size_t operand) {
  return std::all_of(axes.begin(), axes.end(), [&](const auto& axis) { return axis.strides[operand] == 0; });
}

// Sets the count, and the rows of strided operands, of a layout whose reaches are known.
void complete(Layout& layout, const Axes& axes, const char* name) {
  for (const plugin::FusedAxis& axis : axes) {
    layout.count *= axis.size;
    for (const int64_t stride : axis.strides) narrow(stride * (axis.size - 1), name);
  }
  if (layout.reaches.find(kStrided) == std::string::npos) return;
  layout.rank = static_cast<uint32_t>(axes.size());
  for (size_t d = 0; d < axes.size(); ++d) {
    int32_t row[3] = {narrow(axes[d].size, name), 0, 0};
    if (d + 1 < axes.size()) set_divisor(row);  // the outermost needs no division
    layout.rows.insert(layout.rows.end(), row, row + 3);
    for (size_t k = 0; k < layout.reaches.size(); ++k)
      if (layout.reaches[k] == kStrided) layout.rows.push_back(static_cast<int32_t>(axes[d].strides[k]));
  }
}

// Of some axes of a space with rows. `packed`: elements between two positions of a packed operand; 0 without one.
Layout part_of(const Axes& axes, const std::vector<bool>& wanted, int64_t packed, const char* name) {
  Layout layout;
  for (size_t k = 0; k < wanted.size(); ++k)
    layout.reaches += !wanted[k]                              ? kUnused
                      : is_one(axes, k)                       ? kOnce
                      : follow(axes, k, 1)                    ? kLinear
                      : packed > 0 && follow(axes, k, packed) ? kPacked
                                                              : kStrided;
  complete(layout, axes, name);
  return layout;
}

// Few long rows have a workgroup each, so that more than one subgroup works on them.
constexpr int64_t kFewRows = 64, kLongRow = 1024;
// The most elements whose passes are unrolled for a lane, so that their values stay in registers, and the most
// that all of them may hold of loads, calls and stores: what the driver compiles grows with that.
constexpr int64_t kMostElementsWritten = 32, kMostCode = 512;

uint32_t elements_written(const plugin::FusedProgram& program, int64_t each) {
  const size_t code = program.loads.size() + program.calls.size() + program.reductions.size() + program.stores.size();
  const uint32_t written = std::bit_ceil(static_cast<uint32_t>(each));
  return each <= kMostElementsWritten && written * code <= kMostCode ? written : 0;
}

}  // namespace

Layout layout_of(const plugin::FusedProgram& program, const std::vector<Sizes>& shapes,
                 const std::vector<Sizes>& strides, const std::vector<bool>& wanted, const char* name) {
  const std::vector<const plugin::FusedOperand*> operands = plugin::operands_of(program);
  const Axes axes = plugin::fused_axes(operands, shapes, strides, 0, program.space.dims.size());
  Layout layout;
  for (size_t k = 0; k < operands.size(); ++k)
    layout.reaches += !wanted[k] ? kUnused : operands[k]->uniform() ? kOnce : follow(axes, k, 1) ? kLinear : kStrided;
  complete(layout, axes, name);
  return layout;
}

RowLayout row_layout_of(const plugin::FusedProgram& program, const std::vector<Sizes>& shapes,
                        const std::vector<Sizes>& strides, const std::vector<bool>& wanted, const char* name,
                        uint32_t subgroup, bool software) {
  const std::vector<const plugin::FusedOperand*> operands = plugin::operands_of(program);
  const size_t outer = program.space.outer(), all = program.space.dims.size();
  const int64_t rows = program.space.rows(), length = program.space.row_length();
  RowLayout layout;
  layout.outer = part_of(plugin::fused_axes(operands, shapes, strides, 0, outer), wanted, length, name);
  layout.inner = part_of(plugin::fused_axes(operands, shapes, strides, outer, all), wanted, 0, name);
  layout.outer.count = rows;
  layout.inner.count = length;
  layout.grouped = !software && rows <= kFewRows && length >= kLongRow;
  layout.lanes = layout.grouped ? kGroupSize : std::min(subgroup, std::bit_ceil(static_cast<uint32_t>(length)));
  layout.each = elements_written(program, (length + layout.lanes - 1) / layout.lanes);
  return layout;
}

}  // namespace backplane::vulkan
