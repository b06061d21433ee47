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

TensorFileContents load_tensor_file(const std::string& path, bp_device device) {
  core::graph::TensorFile file(path);
  TensorFileContents contents{{}, file.metadata()};
  const std::set<std::string> complex = complex_names(path, contents.metadata);
  contents.metadata.erase(kComplexKey);
  for (const core::graph::StoredTensor& stored : file.tensors()) {
    if (!complex.count(stored.name)) {
      contents.tensors.emplace_back(stored.name, file.read(stored, device));
      continue;
    }
    BP_CHECK(!stored.shape.empty() && (stored.dtype == BP_FLOAT32 || stored.dtype == BP_FLOAT64), VALUE, path, ": '",
             stored.name, "' is named as complex and does not consist of pairs of float32 or float64");
    const bp_dtype dtype = stored.dtype == BP_FLOAT32 ? BP_COMPLEX64 : BP_COMPLEX128;
    const Shape shape = Shape(stored.shape).first(stored.shape.size() - 1);
    contents.tensors.emplace_back(stored.name, file.read(stored, dtype, shape, device));
  }
  return contents;
}

}  // namespace backplane
