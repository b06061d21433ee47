// A graph as text that people read and parse.hpp reads back: docs/reference/graph-format.md.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace backplane::core::graph {

// Erased nodes are left out; of an edited graph after `compact`. Throws what reading a constant does.
std::string print(const Graph& graph);
// One argument as `print` writes it, for messages and pictures; a value is called by its own id.
std::string argument_text(const Graph& graph, const Argument& argument);
// "float32[batch, 3] cpu"
std::string type_text(const Graph& graph, const Type& type);
// "%7 = bp::add(%1, %2)  (model.py:12 in f)", for errors.
std::string node_text(const Graph& graph, NodeId node);

// Constants of so many elements stand in the text; of a larger one the digest does (FNV-1a over its elements,
// row-major).
inline constexpr int64_t kInlineElements = 16;
uint64_t digest(const Tensor& tensor);

}  // namespace backplane::core::graph
