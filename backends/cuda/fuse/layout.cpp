// How wide a position is, and how each operand is reached; see layout.hpp.
#include "fuse/layout.hpp"

#include <algorithm>
#include <cstdint>

#include "backplane/plugin/dtype.hpp"

namespace backplane::cuda {
namespace {

constexpr int64_t kMostBytes = 16, kMostElements = 4;  // of an operand, that a thread moves together

struct Lying {
  int64_t item;
  const char* data;
  size_t number;
  bool uniform;
};

// Do `width` elements of the operand lie side by side, where one access moves them?
bool is_side_by_side(const Lying& operand, const std::vector<plugin::FusedAxis>& axes, int64_t width) {
  const int64_t bytes = width * operand.item;
  bool together = axes[0].strides[operand.number] == operand.item &&
                  reinterpret_cast<uintptr_t>(operand.data) % static_cast<uint64_t>(bytes) == 0;
  for (size_t d = 1; d < axes.size(); ++d) together = together && axes[d].strides[operand.number] % bytes == 0;
  return together;
}

bool is_linear(const Lying& operand, const std::vector<plugin::FusedAxis>& axes) {
  int64_t step = operand.item;
  for (const plugin::FusedAxis& axis : axes) {
    if (axis.strides[operand.number] != step) return false;
    step *= axis.size;
  }
  return true;
}

// If elements are loaded one by one, a thread that takes several is not faster: adjacent threads then take adjacent
// ones.
uint32_t width_of(const std::vector<Lying>& operands, const std::vector<plugin::FusedAxis>& axes) {
  if (axes.empty()) return 1;
  int64_t largest = 1;
  for (const Lying& operand : operands) largest = std::max(largest, operand.item);
  int64_t width = std::min(kMostElements, kMostBytes / largest);
  while (axes[0].size % width != 0) width /= 2;
  for (const Lying& operand : operands) {
    const bool repeated = axes[0].strides[operand.number] == 0;
    while (width > 1 && !operand.uniform && !repeated && !is_side_by_side(operand, axes, width)) width /= 2;
  }
  return static_cast<uint32_t>(width);
}

}  // namespace

int64_t Layout::count() const {
  int64_t product = 1;
  for (const plugin::FusedAxis& axis : axes) product *= axis.size;
  return product;
}

size_t Layout::strided() const {
  return static_cast<size_t>(std::count_if(reaches.begin(), reaches.end(),
                                           [](char reach) { return reach == kStrided || reach == kRepeated; }));
}

std::string Layout::key() const { return reaches + std::to_string(width) + "." + std::to_string(rank()); }

std::vector<plugin::FusedAxis> axes_of(const plugin::FusedProgram& program, const std::vector<Place>& places) {
  const auto operands = plugin::operands_of(program);
  std::vector<std::vector<int64_t>> shapes, strides;
  for (size_t k = 0; k < places.size(); ++k) {
    shapes.push_back(places[k].shape);
    strides.push_back(places[k].strides);
    for (int64_t& stride : strides.back()) stride *= plugin::kItemSize[operands[k]->dtype];
  }
  return plugin::fused_axes(operands, shapes, strides, 0, program.space.dims.size());
}

Layout layout_of(const plugin::FusedProgram& program, std::vector<plugin::FusedAxis> axes,
                 const std::vector<char*>& data) {
  const auto operands = plugin::operands_of(program);
  std::vector<Lying> lying;
  for (size_t k = 0; k < operands.size(); ++k)
    if (data[k] != nullptr)
      lying.push_back({plugin::kItemSize[operands[k]->dtype], data[k], k, operands[k]->uniform()});
  Layout layout{std::move(axes), std::string(operands.size(), kUnused), 1};
  layout.width = width_of(lying, layout.axes);
  for (const Lying& operand : lying) {
    char& reach = layout.reaches[operand.number];
    if (operand.uniform)
      reach = kOnce;
    else if (is_linear(operand, layout.axes))
      reach = kLinear;
    else
      reach = layout.width > 1 && layout.axes[0].strides[operand.number] == 0 ? kRepeated : kStrided;
  }
  return layout;
}

}  // namespace backplane::cuda
