// A graph from the text that print.hpp writes.
//
// The text is untrusted: memory taken is in proportion to its length, and faults are Errors with line and column. What
// it gives has passed `verify`. Opens the plugins of the devices and ops that it names.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

constexpr uint64_t kAnyDigest = 0;  // of a text that does not know its constants' elements, as a file's

// Gives the tensor of a constant whose elements are not in the text, by its name; an empty one if it has none. The
// digest of its tensor is compared.
struct WantedConstant {
  std::string name;
  uint64_t digest;
  bp_dtype dtype;
  std::vector<int64_t> shape;
  bp_device device;
};
using FindConstant = std::function<Tensor(const WantedConstant& wanted)>;

// `device`: where the graph is to run, in place of the devices that the text names.
std::unique_ptr<Graph> parse(std::string_view text, const FindConstant& find_constant = {},
                             std::optional<bp_device> device = {});

}  // namespace backplane::core::graph
