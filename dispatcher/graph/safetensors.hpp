// Files of named tensors in the safetensors format: https://huggingface.co/docs/safetensors.
//
// A file is untrusted: whatever its header says is checked against the file's size before memory is taken for it, and
// faults are Error(BP_ERROR_VALUE) with the file, the tensor, what was found and what was expected. Not for several
// threads at once.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/tensor.hpp"

namespace backplane::core::graph {

// Complex elements lie as pairs of reals, with a last dim of 2 more than the tensor has: not every reader of the format
// knows of complex dtypes. Whoever writes one says so elsewhere.
struct StoredTensor {
  std::string name;
  bp_dtype dtype;
  std::vector<int64_t> shape;
  uint64_t begin;  // within the file
  uint64_t size;   // bytes
};

class TensorFile {
 public:
  explicit TensorFile(const std::string& path);

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const StoredTensor* find(std::string_view name) const;
  // `dtype` and `shape` beside those of the file: the complex dtype of pairs of reals. Else the file's own.
  Tensor read(const StoredTensor& tensor, bp_device device);
  Tensor read(const StoredTensor& tensor, bp_dtype dtype, Shape shape, bp_device device);

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const;
  void read_header();
  void read_tensor(const std::string& name, const std::string& text);
  void check_layout(uint64_t data_size) const;

  std::string path_;
  std::ifstream file_;
  uint64_t data_begin_ = 0;
  std::map<std::string, std::string> metadata_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
// Writes to a file beside it first, which takes the name once it is whole. Throws Error.
void write_tensor_file(const std::string& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace backplane::core::graph
