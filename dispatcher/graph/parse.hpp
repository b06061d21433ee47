// A graph from the text that print.hpp writes.
//
// The text is untrusted: memory taken is in proportion to its length, and faults are Errors with line and column. What
// it gives has passed `verify`. Opens the plugins of the devices and ops that it names.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "graph/graph.hpp"

namespace backplane::core::graph {

// Gives the tensor of a constant whose elements are not in the text: by its name and digest; an empty one: unknown.
using FindConstant = std::function<Tensor(std::string_view name, uint64_t digest)>;

std::unique_ptr<Graph> parse(std::string_view text, const FindConstant& find_constant = {});

}  // namespace backplane::core::graph
