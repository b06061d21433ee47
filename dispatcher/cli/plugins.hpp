// The commands about plugins.
//
// Each prints to standard output and returns the process's exit status: 0, or 1 if the subject of the command has a
// fault. Throws Error; main prints it. Uses the public interface alone.
#pragma once

#include <string>

namespace backplane::cli {
int plugins(bool why);
int lint(const std::string& path);
}  // namespace backplane::cli
