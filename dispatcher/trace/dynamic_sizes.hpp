// From a trace at one choice of sizes to a graph for all: which sizes those are, and where the function does otherwise.
//
// The function is traced again at other sizes, which costs no memory: traced tensors have no data. First at some near
// the example and some far from it, from which unify.hpp makes the graph, with quotients at all that leave other
// remainders; then (size_ranges.hpp) at the ends of each size's range, where it is compared, and between, by bisection,
// where it differs at an end. The found limits become constraints of the graph, each with the difference beyond it
// and the line.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backplane/graph.hpp"
#include "graph/unify.hpp"

namespace backplane::core {

// What the function is where the named sizes are these. No graph: it cannot be traced there, and `refusal` says why.
struct TraceOfSizes {
  std::shared_ptr<const graph::Graph> graph;
  std::string refusal;
  SourceLine line;  // where the function was, for a refusal
  std::vector<SizeUse> uses;
};
using TraceAtSizes = std::function<TraceOfSizes(const std::vector<int64_t>&)>;

// `example`: the sizes of `first`, whose uses `notes` holds. Throws BP_ERROR_SHAPE naming a size that the function has
// to know.
std::shared_ptr<graph::Graph> trace_dynamic(std::shared_ptr<const graph::Graph> first,
                                            std::span<const graph::NamedSize> named,
                                            const std::vector<int64_t>& example, const TraceAtSizes& trace,
                                            SizeNotes* notes);

}  // namespace backplane::core
