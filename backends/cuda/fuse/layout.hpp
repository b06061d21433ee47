// The layout of a region's operands, as its kernel walks them: the facts that the kernel depends on, and its
// arguments.
#pragma once

#include <string>
#include <vector>

#include "backplane/plugin/fused_layout.hpp"

namespace backplane::cuda {

// How a kernel finds the elements of an operand for one position of its loop.
enum Reach : char {
  kOnce = '1',      // there is one in all
  kLinear = 'i',    // by the position
  kStrided = 's',   // by the layout's axes, side by side
  kRepeated = 'r',  // by the layout's axes, the same for a whole position
  kUnused = '-',    // an output that nobody wants
};

// The place of an operand. Operands are the region's loads, then its stores.
struct Place {
  char* data = nullptr;                 // nullptr: an output that nobody wants
  std::vector<int64_t> shape, strides;  // strides in elements
};

// A position of the loop is `width` elements along the innermost axis.
struct Layout {
  std::vector<plugin::FusedAxis> axes;  // innermost first, strides in bytes
  std::string reaches;                  // one per operand
  uint32_t width = 1;

  int64_t count() const;                                            // elements of the space
  size_t strided() const;                                           // operands that are reached by the axes
  size_t rank() const { return strided() == 0 ? 0 : axes.size(); }  // of the axes that the kernel knows
  std::string key() const;                                          // what the kernel depends on, beside its program
};

// The axes of a whole region, strides in bytes.
std::vector<plugin::FusedAxis> axes_of(const plugin::FusedProgram& program, const std::vector<Place>& places);

// Of axes from axes_of or a part of them; `data` per operand.
Layout layout_of(const plugin::FusedProgram& program, std::vector<plugin::FusedAxis> axes,
                 const std::vector<char*>& data);

}  // namespace backplane::cuda
