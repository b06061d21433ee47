// The header of a safetensors file: JSON that says where each tensor lies, and texts beside them.
//
// A header is untrusted. It is read in one pass, in time that grows with its length, and memory in proportion.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/tensor.hpp"

namespace backplane::core::graph {

// Complex elements lie as pairs of reals, with a last dim of 2 more than the tensor has: not every reader of the format
// knows of complex dtypes. The writer states this elsewhere.
struct StoredTensor {
  std::string name;
  bp_dtype dtype;
  std::vector<int64_t> shape;
  uint64_t begin;  // within the data
  uint64_t size;   // bytes
};

struct TensorHeader {
  std::map<std::string, std::string> metadata;
  std::vector<StoredTensor> tensors;
  std::vector<uint32_t> by_name;  // positions of tensors, in the order of the names, which differ

  const StoredTensor* find(std::string_view name) const;
};

constexpr const char* kMetadata = "__metadata__";

// Throws Error(BP_ERROR_VALUE), without the file's name.
TensorHeader read_tensor_header(std::string_view text);

const char* word_of_dtype(bp_dtype dtype);

// Long names and values in errors.
std::string shown(const std::string& text);

}  // namespace backplane::core::graph
