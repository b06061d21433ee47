// Files of named tensors in the safetensors format, which every reader of it opens. Functions throw Error.
//
// Python's bp.save and bp.load write and read the same files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
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

// A file whose tensors are read one by one. Several threads may read at once.
class BACKPLANE_API TensorFileReader {
 public:
  // Checks the header against the size of the file.
  explicit TensorFileReader(const std::string& path);
  ~TensorFileReader();
  TensorFileReader(TensorFileReader&&) noexcept;
  TensorFileReader& operator=(TensorFileReader&&) noexcept;

  int64_t size() const noexcept;
  // The tensors have the numbers 0 to size() - 1, in the order of the file. An unknown name has the number -1.
  int64_t find(std::string_view name) const noexcept;
  const std::string& name(int64_t tensor) const;
  Tensor read(int64_t tensor, bp_device device) const;
  const std::map<std::string, std::string>& metadata() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace backplane
