// The commands about ops.
//
// Each prints to standard output and returns the process's exit status: 0, or 1 if the subject of the command has a
// fault. Throws Error; main prints it. Uses the public interface alone.
#pragma once

#include <string>
#include <vector>

namespace backplane::cli {
int list_ops();
int coverage();
int explain_op(const std::string& name);
// What ran where in a call of its first sample on each of the devices; on every one that there is where none is named.
int explain_placement(const std::string& name, const std::vector<std::string>& devices);
}  // namespace backplane::cli
