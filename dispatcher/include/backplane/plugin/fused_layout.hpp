// The axes along which a fused region's operands are walked: those that are one axis in every operand are joined.
// Header-only; of what a region's operands are (backplane/plugin/fused_program.hpp) it takes where they lie.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "backplane/plugin/fused_program.hpp"

namespace backplane::plugin {

// One axis of the space: its size, and a stride of each operand.
struct FusedAxis {
  int64_t size;
  std::vector<int64_t> strides;
};

// The loads of a region, then its stores.
inline std::vector<const FusedOperand*> operands_of(const FusedProgram& program) {
  std::vector<const FusedOperand*> operands;
  for (const FusedOperand& load : program.loads) operands.push_back(&load);
  for (const FusedOperand& store : program.stores) operands.push_back(&store);
  return operands;
}

// The axes of the space's dims from `first` up to `end`, innermost first, without axes of size 1. `shapes` and
// `strides` are of each operand's tensor; an operand without a shape is absent.
inline std::vector<FusedAxis> fused_axes(const std::vector<const FusedOperand*>& operands,
                                         const std::vector<std::vector<int64_t>>& shapes,
                                         const std::vector<std::vector<int64_t>>& strides, size_t first, size_t end) {
  std::vector<FusedAxis> axes;
  for (size_t d = end; d-- > first;) {
    FusedAxis axis{1, std::vector<int64_t>(operands.size(), 0)};
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

}  // namespace backplane::plugin
