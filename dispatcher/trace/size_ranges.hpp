// The limits within which a graph equals the function: the ends of each size's range, by bisection, and the
// relations of two sizes. They become the graph's constraints.
//
// The limits are then tried at other sizes, and narrowed until the graph is right at each. Not to be shared among
// threads.
#pragma once

#include <utility>

#include "trace/size_traces.hpp"

namespace backplane::core {

using graph::Dim;
using Relation = graph::Constraint::Relation;

constexpr int64_t kFar = 66000;  // from the example, where a size that has no limit is tried

class SizeRanges : protected SizeTraces {
 protected:
  using SizeTraces::SizeTraces;
  void find_ranges();
  // What the function's own code made of sizes becomes constraints, as far as it is known at other sizes.
  void relate_uses(SizeNotes* notes);

  bool is_far_ = false;   // the graph was made of sizes up to kFar
  bool is_near_ = false;  // it was made of a few sizes beside the example

 private:
  Dim symbol(size_t i) { return graph_->sizes.symbol(static_cast<graph::SymbolId>(i)); }
  void add(Relation relation, Dim left, Dim right, const TraceDifference& why);
  // In place of a wider limit, where there is one.
  void limit(size_t i, bool is_highest, int64_t end, const TraceDifference& why);
  // The last size that is right on the way from one that is to one that is not, the others as in `at`, and why the next
  // one is not.
  std::pair<int64_t, TraceDifference> edge(const Sizes& at, size_t i, int64_t right, int64_t wrong);
  void find_range(size_t i);
  void find_lowest(size_t i, int64_t least, int64_t step);
  // Does the end of a range move with another size, by as much? Then that is a constraint.
  bool is_other(size_t i, int64_t end, bool is_highest, const TraceDifference& why);
  bool is_allowed(const Sizes& sizes) const;
  // The ends of all ranges, each with each; some between them, more of them small than large; all of a short range. Of
  // these, also some at which all names have moved by about as much, as a constraint may have it.
  std::vector<Sizes> probes() const;
  int64_t steps(size_t i) const { return (highest_[i] - lowest_[i]) / std::abs(step_[i]); }
  // Narrower limits, until the graph is right at all sizes that were tried within them.
  void narrow();
  // One name after the other takes these sizes, until the graph is wrong: there that name's range ends.
  void exclude(const Sizes& wrong);
  // Refuses a quotient that fits only a few sizes: it follows from these, and not from the function.
  void check_quotients();
  // Two sizes that the example tells apart are equal: is that a case of its own?
  void find_equals();
  void relate(const SizeUse& use, Dim left, Dim right);
  // A size that both may have, by their steps.
  std::optional<int64_t> common_size(size_t i, size_t k) const;
  void add_equal(size_t i, size_t k);

  Sizes lowest_, highest_;  // where the graph was found to be right
};

}  // namespace backplane::core
