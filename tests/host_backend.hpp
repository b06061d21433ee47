// What a test registers: the table of a backend in host memory, and rows of kernels. A test that wants a slot or a
// member otherwise writes it afterwards; what both point to must outlive the registration.
#pragma once

#include "backplane/abi/backend.h"
#include "backplane/abi/plugin.h"

namespace backplane::testing {

// A synchronous backend of two devices, whose memory is malloc's.
bp_backend_def host_backend(const char* name);

// Of any dtype, without flags.
bp_kernel_def kernel_row(const char* op, const char* backend, bp_kernel_fn fn);

}  // namespace backplane::testing
