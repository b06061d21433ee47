// What a call's operands and given outputs must be before a device sees them: of one device, writable, of the result's
// shape.
#pragma once

#include "call/dispatch.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {

// The device of a call: its tensors' device, which must agree; else a Device argument; else the default.
Device& device_of_call(const Call& call);
// The same for a call that does not run: its tensors may belong to a level.
Device& device_of_operands(const Call& call);
// Has the output that the caller gave the result's shape, a dtype that holds it, and writable memory on the device?
void check_given(const OpEntry& op, const TensorImpl& target, const ShapeResult& shape, bp_dtype dtype, Device& device);
// Before a write into a tensor that the caller gave. Throws for read-only and self-overlapping ones.
void check_writable(const OpEntry& op, const TensorImpl& target);

}  // namespace backplane::core
