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
// the node as it stands in the text, for errors.
std::string node_text(const Graph& graph, NodeId node);

// The parts of the text, for other forms of a graph; values are called by their own ids.
struct Statements {
  std::vector<std::string> symbols, draws, constraints;  // without the word that each begins with
};
Statements statements(const Graph& graph);
struct NamedText {
  std::string name, text;
};
std::vector<NamedText> argument_texts(const Graph& graph, NodeId node);  // those that differ from their defaults
std::string location_text(const Graph& graph, uint32_t location);        // FILE:LINE in FUNCTION; "" of kNone

// Constants of so many elements stand in the text; of a larger one the digest does (FNV-1a over its elements,
// row-major).
inline constexpr int64_t kInlineElements = 16;
uint64_t digest(const Tensor& tensor);

}  // namespace backplane::core::graph
