// A call on a device: the row, the operands in the form that it asks for, the kernel, the results.
#pragma once

#include "call/dispatch.hpp"
#include "call/temporaries.hpp"

namespace backplane::core {

void call_on_device(const Call& call);
// A tensor in the form that a row asks for: dtype, layout, alignment. Returns `t` itself where it fits.
TensorImpl* prepare_tensor(TensorImpl* t, const KernelRow& row, Device& device, bool in_compute, bp_dtype compute,
                           Temporaries& temporaries);

}  // namespace backplane::core
