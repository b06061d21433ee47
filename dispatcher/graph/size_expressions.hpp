// The uses of sizes (backplane/size_uses.hpp) of several runs of one function, as expressions in a graph's symbols.
//
// Sizes that were read of tensors are found from their values, arithmetic follows from its operands. The lists of all
// runs are of one form. No locks: they belong to one search.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "backplane/size_uses.hpp"
#include "graph/compare_traces.hpp"
#include "graph/size_fit.hpp"

namespace backplane::core::graph {

// In which a run's uses are not of the form of the first run's, or a comparison has another outcome.
std::optional<TraceDifference> difference_of_uses(std::span<const SizeUse> first, std::span<const SizeUse> other);

class SizeExpressions {
 public:
  // `runs`: at the choices of `fit`, which knows the expressions afterwards.
  SizeExpressions(Graph& graph, SizeFit& fit, std::span<const std::span<const SizeUse>> runs);
  // For a use or a number; empty if the graph cannot hold it.
  std::optional<Dim> of(const SizeUse::Operand& operand) const;
  std::optional<Dim> of(size_t use) const { return found_[use]; }
  // Is the value the same in all runs?
  bool is_steady(const SizeUse::Operand& operand) const;
  bool is_steady(size_t use) const;

 private:
  std::optional<Dim> find(size_t use);
  std::vector<int64_t> values(size_t use) const;

  Graph& graph_;
  SizeFit& fit_;
  std::span<const std::span<const SizeUse>> runs_;
  std::vector<std::optional<Dim>> found_;
};

}  // namespace backplane::core::graph
