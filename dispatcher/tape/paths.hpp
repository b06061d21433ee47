// Which nodes of a history lead to the tensors that a pass is asked about: of the others nothing is computed, and no
// hook runs.
#pragma once

#include <span>
#include <unordered_map>

#include "tape/node.hpp"

namespace backplane::core {

class PathsTo {
 public:
  // One walk over the nodes that `roots` reach, and that are at least as new as the oldest of `inputs`.
  PathsTo(std::span<const Edge> inputs, std::span<const Edge> roots);
  bool leads(const Node* node) const {
    const auto found = leads_.find(node);
    return found != leads_.end() && found->second;
  }

 private:
  std::unordered_map<const Node*, bool> leads_;
};

}  // namespace backplane::core
