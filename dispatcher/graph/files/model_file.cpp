#include "graph/files/model_file.hpp"

#include <set>

#include "graph/files/document.hpp"
#include "graph/files/safetensors.hpp"
#include "graph/ordered_nodes.hpp"
#include "graph/passes/dead_code.hpp"
#include "graph/updates.hpp"

namespace backplane::core::graph {
namespace {

// Names that differ, of the constants of a graph and of those within it.
void name_constants(Graph& graph, const std::string& prefix, std::set<std::string>& names,
                    std::vector<NamedTensor>& tensors) {
  for (size_t i = 0; i < graph.constants().size(); ++i) {
    const Constant& c = graph.constants()[i];
    std::string name = c.name.empty() ? prefix + "constant." + std::to_string(i) : prefix + c.name;
    while (!names.insert(name).second) name += "_";
    graph.rename_constant(i, name);
    tensors.push_back({name, c.tensor});
  }
  for (size_t i = 0; i < graph.graphs.size(); ++i) {
    std::shared_ptr<Graph> inner = graph.graphs[i]->clone();
    inner->compact();
    name_constants(*inner, prefix + "graph." + std::to_string(i) + ".", names, tensors);
    graph.graphs[i] = std::move(inner);
  }
}

}  // namespace

void save(const Graph& graph, const std::string& path) {
  if (!graph.updates.empty())
    detail::fail(BP_ERROR_NOT_IMPLEMENTED, "export: graph ", graph.name, ": changes ",
                 name_of_target(graph, graph.updates[0]),
                 " in place, but a file has no caller with this tensor. Fix: copy it first, and return the "
                 "new value; running statistics are not updated outside of training");
  if (const std::vector<NodeId> ordered = ordered_nodes(graph); !ordered.empty())
    detail::fail(BP_ERROR_NOT_IMPLEMENTED, "export: graph ", graph.name, ": node ", ordered[0], " calls ",
                 graph.node(ordered[0]).op->record->name,
                 ", which has an effect on the running program, such as output or communication. A file cannot have "
                 "it. Fix: leave "
                 "the call out of the exported function");
  const std::unique_ptr<Graph> written = graph.clone();
  remove_dead_code(*written);
  written->compact();
  std::set<std::string> names = {"__metadata__"};
  std::vector<NamedTensor> tensors;
  name_constants(*written, "", names, tensors);
  write_tensor_file(path, tensors, {{kDocumentKey, document_of(*written)}});
}

std::shared_ptr<const Graph> load(const std::string& path, std::optional<bp_device> device) {
  TensorFile file(path);
  const auto document = file.metadata().find(kDocumentKey);
  BP_CHECK(document != file.metadata().end(), VALUE, path, ": holds tensors and no graph: its metadata has no \"",
           kDocumentKey, "\". Fix: write it with export");
  const FindConstant find = [&](const WantedConstant& wanted) {
    const StoredTensor* stored = file.find(wanted.name);
    return stored ? file.read(*stored, wanted.dtype, wanted.shape, wanted.device) : Tensor();
  };
  try {
    return graph_of_document(document->second, find, device);
  } catch (const Error& error) {
    if (error.code() == BP_ERROR_PYTHON || std::string_view(error.what()).starts_with(path)) throw;
    throw Error(error.code(), path + ": " + error.what());
  }
}

}  // namespace backplane::core::graph
