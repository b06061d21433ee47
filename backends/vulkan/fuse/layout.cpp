// What lies in order along the joined axes needs no rows.
#include "fuse/layout.hpp"

namespace backplane::vulkan {

Layout layout_of(const plugin::FusedProgram& program, const std::vector<Sizes>& shapes,
                 const std::vector<Sizes>& strides, const std::vector<bool>& wanted, const char* name) {
  const std::vector<const plugin::FusedOperand*> operands = plugin::operands_of(program);
  const std::vector<plugin::FusedAxis> axes = plugin::fused_axes(operands, shapes, strides, program.rank);
  Layout layout;
  for (const plugin::FusedAxis& axis : axes) layout.count *= axis.size;
  for (size_t k = 0; k < operands.size(); ++k) {
    bool linear = true;
    int64_t step = 1;
    for (const plugin::FusedAxis& axis : axes) {
      narrow(axis.strides[k] * (axis.size - 1), name);
      linear = linear && axis.strides[k] == step;
      step *= axis.size;
    }
    layout.reaches += !wanted[k] ? kUnused : operands[k]->uniform() ? kOnce : linear ? kLinear : kStrided;
  }
  if (layout.reaches.find(kStrided) == std::string::npos) return layout;
  layout.rank = static_cast<uint32_t>(axes.size());
  for (size_t d = 0; d < axes.size(); ++d) {
    int32_t row[3] = {narrow(axes[d].size, name), 0, 0};
    if (d + 1 < axes.size()) set_divisor(row);  // the outermost needs no division
    layout.rows.insert(layout.rows.end(), row, row + 3);
    for (size_t k = 0; k < operands.size(); ++k)
      if (layout.reaches[k] == kStrided) layout.rows.push_back(static_cast<int32_t>(axes[d].strides[k]));
  }
  return layout;
}

}  // namespace backplane::vulkan
