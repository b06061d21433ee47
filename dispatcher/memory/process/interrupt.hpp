// Whether the program wants the running call to stop (Ctrl-C), which is asked between the parts of long work: the nodes
// of a backward pass, a kernel's pieces, and the slices of a wait. Asked on the thread that made the call alone.
#pragma once

#include "backplane/abi/base.h"

namespace backplane::core {

// May the running call be asked to stop?
bool has_interrupt_check() noexcept;
// Throws what the program's check throws.
void check_interrupt();
// The same as a status, with its message kept for the thread.
bp_status interrupt_status() noexcept;

}  // namespace backplane::core
