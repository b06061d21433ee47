#include "graph/passes/optimize.hpp"

#include "graph/passes/common_subexpressions.hpp"
#include "graph/passes/constant_folding.hpp"
#include "graph/passes/dead_code.hpp"
#include "graph/passes/decompose.hpp"
#include "graph/passes/put_sums.hpp"
#include "graph/passes/rewrite.hpp"
#include "graph/passes/scan_products.hpp"
#include "graph/passes/slice_sums.hpp"
#include "graph/passes/transposes.hpp"
#include "graph/verify.hpp"

namespace backplane::core::graph {
namespace {

using Pass = size_t (*)(Graph&);
constexpr Pass kPasses[] = {remove_dead_code,
                            remove_needless_copies,
                            move_products_out_of_scans,
                            add_composed_parts_in_place,
                            decompose_without_kernel,
                            remove_needless_copies,
                            join_slice_sums,
                            add_parts_in_place,
                            fold_constants,
                            merge_common_subexpressions,
                            rewrite,
                            sink_transposes,
                            remove_dead_code};
bool keeps_ops_whole(Pass pass) { return pass != decompose_without_kernel && pass != move_products_out_of_scans; }

// A verification takes half as long as all passes together: of a larger graph there is one, after the last pass.
constexpr size_t kVerifiedAfterEach = 10000;

std::shared_ptr<const Graph> passed(const Graph& graph, bool whole_ops) {
  std::shared_ptr<Graph> better = graph.clone();
  const bool after_each = graph.nodes().size() <= kVerifiedAfterEach;
  for (const Pass pass : kPasses) {
    if (whole_ops && !keeps_ops_whole(pass)) continue;
    pass(*better);
    if (after_each) verify(*better);
  }
  if (!after_each) verify(*better);
  return better;
}

}  // namespace

std::shared_ptr<const Graph> optimize(const Graph& graph) { return passed(graph, false); }
std::shared_ptr<const Graph> optimize_whole_ops(const Graph& graph) { return passed(graph, true); }

}  // namespace backplane::core::graph
