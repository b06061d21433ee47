// The command `doctor`.
//
// Prints to standard output and returns the process's exit status: 0, or 1 where what it was asked about has a fault.
// Throws Error; main prints it. Uses the public interface alone.
#pragma once

namespace backplane::cli {
int doctor();
}  // namespace backplane::cli
