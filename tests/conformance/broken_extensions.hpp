// Faults of the simulated accelerator's extensions; see broken_extensions.cpp.
#pragma once

#include <atomic>
#include <string>

#include "backplane/abi/backend.h"

// What BROKEN_FAULT names; "": none.
std::string fault();
// The right kernel of bp::negative, once its row is registered.
extern bp_kernel_fn negative_kernel;
// With the fault "stays_lost": has the device been reset?
extern std::atomic<bool> was_reset;
// Does the fault need a device whose memory is handles, which keeps a pool of its own?
bool needs_handles();
// Puts the extensions with the fault, where it is one of theirs, in the place of the right ones. `right` lives on.
void break_extensions(const bp_backend_def& right, bp_backend_def& faulty);
