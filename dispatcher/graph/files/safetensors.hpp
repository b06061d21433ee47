// Files of named tensors in the safetensors format: https://huggingface.co/docs/safetensors.
//
// A file is untrusted: its header is checked against the file's size before memory is allocated, and
// faults are Error(BP_ERROR_VALUE) with the file, the tensor, the value found and the value expected. Several threads
// may read at once.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/files/tensor_header.hpp"

namespace backplane::core::graph {

class TensorFile {
 public:
  explicit TensorFile(const std::string& path);

  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const StoredTensor* find(std::string_view name) const { return header_.find(name); }
  // The stored dtype and shape, or `dtype` and `shape` in their place: the complex dtype of pairs of reals.
  Tensor read(const StoredTensor& tensor, bp_device device) const;
  Tensor read(const StoredTensor& tensor, bp_dtype dtype, Shape shape, bp_device device) const;

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const;
  bool read_bytes(char* to, uint64_t size, uint64_t begin) const;
  void read_header();
  void check_layout(uint64_t data_size) const;

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  uint64_t data_begin_ = 0;
  TensorHeader header_;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
// As a whole, and to the disk (backplane/plugin/whole_file.hpp). Throws Error.
void write_tensor_file(const std::string& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace backplane::core::graph
