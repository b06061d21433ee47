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
  kPacked = 'p',   // by its position times the length of a row
  kStrided = 's',  // by the layout's rows
  kUnused = '-',   // an output that nobody wants
};

// Operands are the region's loads, then its stores.
struct Layout {
  int64_t count = 1;    // elements of the space
  uint32_t rank = 0;    // of the rows; 0: no operand is strided
  std::string reaches;  // one per operand
  std::vector<int32_t>
      rows;  // per axis, innermost first: size, multiplier and shift (see Rows), strided operands' strides
  std::string key() const { return reaches + std::to_string(rank); }  // what the shader depends on
};

// Of a region with rows: where a row begins, and where its elements lie from there.
struct RowLayout {
  Layout outer, inner;
  bool grouped = false;  // does a workgroup share a row? else lanes of a subgroup
  uint32_t lanes = 0;    // that do; a power of 2
  uint32_t each = 0;     // elements for each of which a lane's passes are written; 0: they are loops
  std::string key() const { return outer.key() + "/" + inner.key() + (grouped ? "g" : "l") + std::to_string(each); }
};

// `shapes`, `strides`: of each operand's tensor, in elements; `wanted`: of each operand. Throws where a tensor is
// spread over 2^31 elements.
Layout layout_of(const plugin::FusedProgram& program, const std::vector<Sizes>& shapes,
                 const std::vector<Sizes>& strides, const std::vector<bool>& wanted, const char* name);
// `subgroup`: its size. `software`: is the device the processor? It runs a workgroup's subgroups one after the other,
// so none shares a row with others.
RowLayout row_layout_of(const plugin::FusedProgram& program, const std::vector<Sizes>& shapes,
                        const std::vector<Sizes>& strides, const std::vector<bool>& wanted, const char* name,
                        uint32_t subgroup, bool software);

}  // namespace backplane::vulkan
