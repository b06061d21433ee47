// The commands of `backplane`. Each prints to standard output and returns the process's exit status: 0, or 1 where
// what it was asked about has a fault. They throw Error; main prints it. They use the public interface alone.
#pragma once

#include <string>

namespace backplane::cli {

int doctor();
int plugins(bool why);
int list_ops();
int coverage();
int explain_op(const std::string& name);
int lint(const std::string& path);

}  // namespace backplane::cli
