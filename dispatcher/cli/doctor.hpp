// The commands `doctor` and `devices`.
//
// Each prints to standard output and returns the process's exit status: 0, or 1 if it found a fault or no device.
// Throws Error; main prints it. Uses the public interface alone.
#pragma once

namespace backplane::cli {
int doctor();
int list_devices();
}  // namespace backplane::cli
