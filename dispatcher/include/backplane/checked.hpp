// Checked mode: what kernels do is looked at around every call of one, and the guilty one is named.
//
// A checked kernel writes its results and its scratch memory between margins that hold a pattern, into memory that
// holds another; the call is waited for, and fails where a margin, an argument or a bool is not as it must be. That is
// slow, and what runs at the same time runs one after the other. Rows are checked that are registered after it was
// enabled; the environment variable BACKPLANE_CHECKED=1 does so from the start. Calls of other kernels pay nothing.
#pragma once

#include "backplane/abi/backend.h"
#include "backplane/tensor.hpp"

namespace backplane {

// Before plugins are loaded. It stays so for the process.
BACKPLANE_API void enable_checked_kernels() noexcept;
// Are checks made at present, by kernels that can be checked? Returns the old setting; on once enabled.
BACKPLANE_API bool check_kernels(bool checked) noexcept;

// The table of the device's backend, for tools that try it against the contract. It lives as long as the process.
BACKPLANE_API const bp_backend_def& backend_table(bp_device device);

}  // namespace backplane
