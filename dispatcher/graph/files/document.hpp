// A graph as a JSON document of a stated version, and back: docs/reference/graph-format.md.
//
// Sizes, arguments and types stand in it as in a graph's text. Its constants stand elsewhere, by name. A document is
// untrusted, as a text is.
#pragma once

#include "graph/text/parse.hpp"

namespace backplane::core::graph {

// 3: square roots of sizes. 2: sizes with quotients, floating numbers of sizes, sizes of the graph around. A graph with
// none of these has version 1.
inline constexpr int kDocumentVersion = 3;

// Of a compact graph, whose constants have different names.
std::string document_of(const Graph& graph);
// Throws Error(BP_ERROR_VERSION) for a document of a newer version, or of a newer signature of an op.
std::unique_ptr<Graph> graph_of_document(std::string_view document, const FindConstant& find_constant,
                                         std::optional<bp_device> device = {});

}  // namespace backplane::core::graph
