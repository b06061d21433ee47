// The form in which a row's kernel takes a call: its tensors' dtype, layout and alignment, its numbers, its loop. For a
// call that runs now and for one that is made ready ahead (graph/).
#pragma once

#include "call/dispatch.hpp"
#include "call/formulas/temporaries.hpp"
#include "memory/tensors/loop.hpp"

namespace backplane::core {

// Has the tensor the layout that the row asks for? And lies where the row and the device can begin?
bool fits_layout(const TensorImpl& t, const KernelRow& row);
bool is_aligned(const TensorImpl& t, uint64_t alignment);
uint64_t alignment_of(const KernelRow& row, const Device& device);

// A tensor in the form that a row asks for: dtype, layout, alignment. Returns `t` itself where it fits.
TensorImpl* prepare_tensor(TensorImpl* t, const KernelRow& row, Device& device, bool in_compute, bp_dtype compute,
                           Temporaries& temporaries);
// A Scalar, beside the tensors of a kernel. Throws for one that the compute dtype does not hold.
bp_value prepare_scalar(const OpRecord& record, int32_t arg, const bp_value& number, bp_dtype compute);

// Of prepared arguments and outputs: does the frame have a loop, or is the call flat, or without a loop?
bool needs_loop(const Call& call, const KernelRow& row, const bp_value* args, const bp_value* outs);
// The loop's numbers lead into `loop`.
void build_loop(const Call& call, const bp_value* args, const bp_value* outs, LoopStorage& loop);

}  // namespace backplane::core
