// The traces of a search for a graph of any size (dynamic_sizes.hpp), each made once: their sizes, whether
// the graph so far equals the function there, and the error if no graph does.
//
// A name that changes only together with another name of the same size follows it, its leader. Not to be shared
// among threads.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/dynamic_sizes.hpp"

namespace backplane::core {

using graph::TraceDifference;
using GraphPointer = std::shared_ptr<graph::Graph>;
using Sizes = std::vector<int64_t>;  // one per name

class SizeTraces {
 protected:
  SizeTraces(std::shared_ptr<const graph::Graph> first, std::span<const graph::NamedSize> named, Sizes example,
             const TraceAtSizes& trace, const SizeNotes& notes);

  const TraceOfSizes& at(const Sizes& sizes);
  // The example with this size, and those that follow it, changed.
  Sizes with(size_t i, int64_t size) const { return with(example_, i, size); }
  Sizes with(Sizes sizes, size_t i, int64_t size) const;
  std::string text(const Sizes& sizes) const;
  static TraceDifference refusal_of(const TraceOfSizes& trace);
  // Why no graph is of the example and of these; nothing: one is.
  std::optional<TraceDifference> unlike(std::vector<Sizes> choices, GraphPointer* found = nullptr);
  // Why the graph does not do what the function does there.
  std::optional<TraceDifference> wrong_at(const Sizes& sizes);
  std::optional<TraceDifference> said_at(const Sizes& sizes, TraceDifference difference) const;
  // Are two sizes equal that the example tells apart?
  bool has_new_equals(const Sizes& sizes) const;
  [[noreturn]] void refuse(size_t i, const TraceDifference& why) const;

  std::span<const graph::NamedSize> named_;
  const Sizes example_;
  const TraceAtSizes& trace_;
  Sizes step_;                  // per name: what its size changes by
  std::vector<size_t> leader_;  // per name: the first of those that change together
  std::map<Sizes, TraceOfSizes> known_;
  GraphPointer graph_;
};

}  // namespace backplane::core
