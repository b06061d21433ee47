// Graphs in files: one safetensors file, with the constants as tensors and the document in its metadata.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.hpp"

namespace backplane::core::graph {

inline constexpr const char* kDocumentKey = "backplane.graph";  // of the file's metadata

// Constants without a name of their own get one. Throws Error.
void save(const Graph& graph, const std::string& path);
// `device`: where it is to run, in place of the devices that the file names. Throws Error naming the file.
std::shared_ptr<const Graph> load(const std::string& path, std::optional<bp_device> device = {});

}  // namespace backplane::core::graph
