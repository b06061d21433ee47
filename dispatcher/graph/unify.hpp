// Several traces of one function, each of other sizes, as one graph whose sizes are expressions.
//
// The traces must be the same but for integers, sizes and floating numbers that are sizes or whole numbers divided by
// one. What those are in the symbols is found from their values (size_fit.hpp); nothing here knows a shape rule, and
// its result holds only for these traces: the caller tries further ones with `difference`.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "backplane/size_uses.hpp"
#include "graph/compare_traces.hpp"

namespace backplane::core::graph {

// Sizes of inputs with a name, all the same.
struct NamedSize {
  struct Place {
    size_t input;
    uint32_t axis;
  };
  std::string name;
  std::vector<Place> places;  // one at least
};

// `choices`: the size of each name in each trace; the first is the example. `uses`: the operations of each on
// sizes, of one form. All traces are compact.
std::variant<std::shared_ptr<Graph>, TraceDifference> unify(std::span<const std::shared_ptr<const Graph>> traces,
                                                            std::span<const NamedSize> named,
                                                            std::span<const std::vector<int64_t>> choices,
                                                            std::span<const std::span<const SizeUse>> uses);

}  // namespace backplane::core::graph
