#include "backplane/tensor_file.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "backplane/transforms.hpp"
#include "graph/files/safetensors.hpp"

namespace backplane {
namespace {

// In the metadata: the names of complex tensors, which lie in the file as pairs of reals.
constexpr const char* kComplexKey = "backplane.complex";

std::set<std::string> complex_names(const std::string& path, const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find(kComplexKey);
  if (found == metadata.end()) return {};
  const nlohmann::json names = nlohmann::json::parse(found->second, nullptr, false);
  std::set<std::string> complex;
  if (names.is_array())
    for (const nlohmann::json& name : names)
      if (name.is_string()) complex.insert(name.get<std::string>());
  BP_CHECK(names.is_array() && complex.size() == names.size(), VALUE, path, ": the metadata's \"", kComplexKey,
           "\" is not a list of names");
  return complex;
}

}  // namespace

void save_tensor_file(const std::string& path, const TensorFileContents& contents) {
  std::vector<core::graph::NamedTensor> named;
  std::set<std::string> names;
  nlohmann::json complex = nlohmann::json::array();
  for (const auto& [name, tensor] : contents.tensors) {
    BP_CHECK(tensor, VALUE, "save: found an empty tensor for the name '", name, "'");
    BP_CHECK(name != core::graph::kMetadata, VALUE, "save: found a tensor of the name '", name,
             "', which safetensors files use themselves");
    BP_CHECK(names.insert(name).second, VALUE, "save: found two tensors of the name '", name, "'");
    BP_CHECK(!is_transformed(tensor), VALUE, "save: '", name,
             "': found a tensor of a trace or a transform, expected one with values");
    if (BP_DTYPE_BIT(tensor.dtype()) & BP_MASK_COMPLEX) complex.push_back(name);
    named.push_back({name, tensor});
  }
  std::map<std::string, std::string> metadata = contents.metadata;
  if (!complex.empty()) metadata[kComplexKey] = complex.dump();
  core::graph::write_tensor_file(path, named, metadata);
}

struct TensorFileReader::State {
  explicit State(const std::string& path) : file(path), metadata(file.metadata()), complex(file.tensors().size()) {
    for (const std::string& name : complex_names(path, metadata)) {
      const core::graph::StoredTensor* stored = file.find(name);
      BP_CHECK(stored, VALUE, path, ": '", name, "' is named as complex and is not in the file");
      BP_CHECK(!stored->shape.empty() && stored->shape.back() == 2 &&
                   (stored->dtype == BP_FLOAT32 || stored->dtype == BP_FLOAT64),
               VALUE, path, ": '", name, "' is named as complex and does not consist of pairs of float32 or float64");
      complex[static_cast<size_t>(stored - file.tensors().data())] = true;
    }
    metadata.erase(kComplexKey);
  }

  const core::graph::StoredTensor& stored(int64_t tensor) const {
    const auto count = static_cast<int64_t>(file.tensors().size());
    BP_CHECK(tensor >= 0 && tensor < count, INDEX, "load: found the tensor ", tensor, " of a file of ", count);
    return file.tensors()[static_cast<size_t>(tensor)];
  }

  core::graph::TensorFile file;
  std::map<std::string, std::string> metadata;
  std::vector<bool> complex;  // by the number of the tensor
};

TensorFileReader::TensorFileReader(const std::string& path) : state_(std::make_unique<State>(path)) {}
TensorFileReader::~TensorFileReader() = default;
TensorFileReader::TensorFileReader(TensorFileReader&&) noexcept = default;
TensorFileReader& TensorFileReader::operator=(TensorFileReader&&) noexcept = default;

int64_t TensorFileReader::size() const noexcept { return static_cast<int64_t>(state_->file.tensors().size()); }

int64_t TensorFileReader::find(std::string_view name) const noexcept {
  const core::graph::StoredTensor* stored = state_->file.find(name);
  return stored ? stored - state_->file.tensors().data() : -1;
}

const std::string& TensorFileReader::name(int64_t tensor) const { return state_->stored(tensor).name; }

const std::map<std::string, std::string>& TensorFileReader::metadata() const noexcept { return state_->metadata; }

Tensor TensorFileReader::read(int64_t tensor, bp_device device) const {
  const core::graph::StoredTensor& stored = state_->stored(tensor);
  if (!state_->complex[static_cast<size_t>(tensor)]) return state_->file.read(stored, device);
  const bp_dtype dtype = stored.dtype == BP_FLOAT32 ? BP_COMPLEX64 : BP_COMPLEX128;
  return state_->file.read(stored, dtype, Shape(stored.shape).first(stored.shape.size() - 1), device);
}

TensorFileContents load_tensor_file(const std::string& path, bp_device device) {
  const TensorFileReader file(path);
  TensorFileContents contents{{}, file.metadata()};
  for (int64_t i = 0; i < file.size(); ++i) contents.tensors.emplace_back(file.name(i), file.read(i, device));
  return contents;
}

}  // namespace backplane
