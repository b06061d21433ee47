// Sums of cotangents in place: a pass owns the sum that waits at a node, and adds what arrives into its buffer.
//
// The gradient of a slice, a gather or another part of a tensor is zero but for the part. Where a sum is there already,
// the part alone is added to it; the tensor that is zero elsewhere is never made.
#pragma once

#include "backplane/tensor.hpp"
#include "call/formulas/run_formula.hpp"
#include "tape/node.hpp"

namespace backplane::core {

// Does the pass alone hold `sum`, and may an addition of such tensors go into its memory? `recorded`: formulas are
// recorded, so only tensors without a history may.
bool may_add_into(const Tensor& sum, bool recorded);
// Is it a tensor with its own memory and without a history? `recorded`: as above.
bool is_plain(const TensorImpl& tensor, bool recorded);

// Adds the cotangent of argument `arg`, as `formula` gives it of `inputs`, into `sum`. False: it does not add to a part
// of its argument alone, and nothing is done.
bool add_part(const OpEntry& op, uint32_t arg, const bp_formula& formula, const FormulaInputs& inputs,
              const Tensor& sum, bool recorded);

}  // namespace backplane::core
