// What a caller reads when a device has no memory left.
#pragma once

#include "memory/device.hpp"

namespace backplane::core {

// What follows a failure of the backend's `allocate`: once more without what caches hold, or the Error.
void* allocate_again(Device& device, uint64_t size, bp_status status);
// Of a tensor whose size in bytes does not fit.
[[noreturn]] void fail_size(const int64_t* sizes, int32_t ndim, uint64_t item_size);

}  // namespace backplane::core
