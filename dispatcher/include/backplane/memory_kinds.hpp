// Memory of a device by kind and alignment. Functions throw Error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backplane/device.hpp"

namespace backplane {

// The kinds that the device's backend offers (extension "memory"), the usual one first; empty: one kind, without a
// name.
BACKPLANE_API std::vector<std::string> memory_kinds(bp_device device);
// As empty(), in memory of that kind, at a multiple of `alignment` bytes (a power of two; 0: the device's own).
BACKPLANE_API Tensor empty_in(std::string_view kind, Shape shape, bp_dtype dtype, bp_device device,
                              uint64_t alignment = 0);

}  // namespace backplane
