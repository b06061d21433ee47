// Axes that are one axis in every operand are joined; what then lies in order needs no rows.
#include "fuse/layout.hpp"

namespace backplane::vulkan {
namespace {

// One axis of the space: its size, and a stride of each operand.
struct Axis {
  int64_t size;
  Sizes strides;
};

// Innermost first, without those of size 1.
std::vector<Axis> joined_axes(const std::vector<const plugin::FusedOperand*>& operands,
                              const std::vector<Sizes>& shapes, const std::vector<Sizes>& strides, size_t rank) {
  std::vector<Axis> axes;
  for (size_t d = rank; d-- > 0;) {
    Axis axis{1, Sizes(operands.size(), 0)};
    for (size_t k = 0; k < operands.size(); ++k) {
      const int32_t own = operands[k]->axes[d];
      if (own < 0 || shapes[k].empty()) continue;
      axis.size = shapes[k][static_cast<size_t>(own)];
      axis.strides[k] = strides[k][static_cast<size_t>(own)];
    }
    if (axis.size == 1) continue;
    bool joins = !axes.empty();
    for (size_t k = 0; joins && k < operands.size(); ++k)
      joins = axes.back().strides[k] * axes.back().size == axis.strides[k];
    if (joins)
      axes.back().size *= axis.size;
    else
      axes.push_back(std::move(axis));
  }
  return axes;
}

}  // namespace

Layout layout_of(const plugin::FusedProgram& program, const std::vector<Sizes>& shapes,
                 const std::vector<Sizes>& strides, const std::vector<bool>& wanted, const char* name) {
  std::vector<const plugin::FusedOperand*> operands;
  for (const auto& load : program.loads) operands.push_back(&load);
  for (const auto& store : program.stores) operands.push_back(&store);
  const std::vector<Axis> axes = joined_axes(operands, shapes, strides, program.rank);
  Layout layout;
  for (const Axis& axis : axes) layout.count *= axis.size;
  for (size_t k = 0; k < operands.size(); ++k) {
    bool linear = true;
    int64_t step = 1;
    for (const Axis& axis : axes) {
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
