// Arrays in NumPy's files: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
#pragma once

#include <string>

#include "backplane/tensor.hpp"

namespace backplane::cli {

// Row-major arrays of little-endian numbers and bools, of versions 1 to 3 of the format. Throws Error with the file.
Tensor read_npy(const std::string& path, bp_device device);
// bfloat16, which NumPy has no name for, is written as float32.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace backplane::cli
