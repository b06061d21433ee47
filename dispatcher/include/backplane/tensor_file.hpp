// Files of named tensors in the safetensors format, which every reader of it opens. Functions throw Error.
//
// Python's bp.save and bp.load write and read the same files.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backplane/tensor.hpp"

namespace backplane {

struct TensorFileContents {
  std::vector<std::pair<std::string, Tensor>> tensors;  // in the order of the file
  std::map<std::string, std::string> metadata;
};

// Replaces the file as a whole, or leaves it unchanged. The names must differ. Tensors inside transforms are refused.
BACKPLANE_API void save_tensor_file(const std::string& path, const TensorFileContents& contents);
// Checks the header against the size of the file before it reads the elements.
BACKPLANE_API TensorFileContents load_tensor_file(const std::string& path, bp_device device);

}  // namespace backplane
