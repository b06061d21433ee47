// Operands of elementwise ops in the shape of the result, for rows that know of no broadcasting.
#pragma once

#include "memory/tensors/tensor_impl.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {

// Gives this row of an elementwise op each operand with as many elements as the result?
inline bool expands_operands(uint64_t op_flags, uint32_t row_flags) {
  return (op_flags & BP_OP_ELEMENTWISE) && !(row_flags & (BP_KERNEL_LOOP | BP_KERNEL_BROADCASTS));
}

// A view of `t` in the shape: stride 0 where an element is read again and again. The caller owns it. Throws where it
// does not broadcast.
TensorImpl* expanded(const OpRecord& op, const TensorImpl& t, const ShapeResult& shape);

}  // namespace backplane::core
