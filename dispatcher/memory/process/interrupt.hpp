// Whether the program wants the running call to stop (Ctrl-C), which is asked between the parts of long work: the nodes
// of a backward pass, and a kernel's pieces. Asked on the thread that made the call alone.
#pragma once

#include "backplane/abi/base.h"

namespace backplane::core {

// Throws what the program's check throws.
void check_interrupt();
// The same as a status, with its message kept for the thread.
bp_status interrupt_status() noexcept;

}  // namespace backplane::core
