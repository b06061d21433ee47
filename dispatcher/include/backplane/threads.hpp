// How many threads the host's pool uses, this process over.
//
// The pool starts at the first loop that is worth splitting. Its size is BACKPLANE_NUM_THREADS or, without it, the
// number of processors that this process may run on (a value that is not a positive number is ignored). Both functions
// may be called from any thread.
#pragma once

#include <cstdint>

#include "backplane/tensor.hpp"

namespace backplane {

// At least 1: the calling thread is one of them.
BACKPLANE_API int32_t get_num_threads() noexcept;
// Waits for running calls to end. Throws Error: VALUE unless 1 <= count <= 1024, BUSY from inside a call.
BACKPLANE_API void set_num_threads(int32_t count);

// Asked on the thread that made a call, between the parts of long work (the nodes of a backward pass, a kernel's
// pieces): throws Error where the call shall end, which then fails with it. It is asked often, so it should decide
// quickly. nullptr: none. Language bindings set it.
using InterruptCheck = void (*)();
BACKPLANE_API void set_interrupt_check(InterruptCheck check) noexcept;

}  // namespace backplane
