// Where the elements of a region's operands lie, as its shader walks them.
#pragma once

#include <string>

#include "backplane/plugin/fused_layout.hpp"
#include "kernels/call.hpp"

namespace backplane::vulkan {

// How a shader finds an operand's element.
enum Reach : char {
  kOnce = '1',     // there is one
  kLinear = 'i',   // by its position
  kStrided = 's',  // by the layout's rows
  kUnused = '-',   // an output that nobody wants
};

// Operands are what a region loads, then what it stores.
struct Layout {
  int64_t count = 1;    // elements of the space
  uint32_t rank = 0;    // of the rows; 0: no operand is strided
  std::string reaches;  // one per operand
  std::vector<int32_t>
      rows;  // per axis, innermost first: size, multiplier and shift (see Rows), strided operands' strides
  std::string key() const { return reaches + std::to_string(rank); }  // what the shader depends on
};

// `shapes`, `strides`: of each operand's tensor, in elements; `wanted`: of each operand. Throws where a tensor is
// spread over 2^31 elements.
Layout layout_of(const plugin::FusedProgram& program, const std::vector<Sizes>& shapes,
                 const std::vector<Sizes>& strides, const std::vector<bool>& wanted, const char* name);

}  // namespace backplane::vulkan
