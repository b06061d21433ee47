// Arrays in NumPy's files: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
#pragma once

#include <string>

#include "backplane/tensor.hpp"

namespace backplane::cli {

// Arrays of little-endian numbers and bools, of versions 1 to 3 of the format. Throws Error with the file. In the
// file's dtype, but where bfloat16 is wanted: unnamed elements of two bytes are taken for that, and float32 is rounded.
Tensor read_npy(const std::string& path, bp_dtype wanted, bp_device device);
// bfloat16, which NumPy has no name for, is written as float32.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace backplane::cli
