// An elementwise decomposition as one pass: compiled by the device's compiler for the sizes and numbers of the call,
// and kept. What runs then is the kernel that the entry's author did not have to write.
#pragma once

#include "call/dispatch.hpp"
#include "memory/devices/device.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {

// Results below so many elements are computed part by part: the passes cost less than the look-up of compiled code.
inline constexpr int64_t kLeastFused = 32768;

// Of a call that no kernel takes, of at least so many elements. False: it declines, and the parts run one by one. Of
// graph/, by a static initialiser.
using FusedDecomposition = bool (*)(const Call& call, const ShapeResult& shape, Device& device, bp_dtype compute);
inline constinit FusedDecomposition fused_decomposition = nullptr;

}  // namespace backplane::core
