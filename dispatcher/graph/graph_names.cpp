#include "backplane/graph_names.hpp"

#include "graph/graph.hpp"
#include "memory/process/epoch.hpp"

namespace backplane {

Graph name_constants(const Graph& graph, std::span<const std::string> names) {
  core::CallGuard guard;
  BP_CHECK(graph && names.size() <= graph.get()->constants().size(), VALUE, "name_constants: found ", names.size(),
           " names, expected a graph with at least as many constants");
  std::unique_ptr<core::graph::Graph> named = graph.get()->clone();
  for (size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty()) named->rename_constant(i, names[i]);
  return Graph(std::move(named), graph.options());
}

}  // namespace backplane
