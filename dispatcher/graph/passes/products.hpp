// Which nodes multiply matrices: by their op's family, since passes know no op by name.
#pragma once

#include <string_view>

#include "graph/graph.hpp"

namespace backplane::core::graph {

inline bool is_product(const Node& node) {
  const char* family = node.op->record->def.family;
  return family && std::string_view(family) == "matmul";
}

}  // namespace backplane::core::graph
