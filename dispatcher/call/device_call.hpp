// A call on a device: the row, the operands in the form that it asks for, the kernel, the results.
#pragma once

#include "call/dispatch.hpp"

namespace backplane::core {

void call_on_device(const Call& call);

}  // namespace backplane::core
