// One node's share of a backward pass.
#pragma once

#include <vector>

#include "tape/paths.hpp"

namespace backplane::core {

// The cotangents of a node's arguments, in the order of its edges; empty slots are zeros. `paths`, if given:
// cotangents that are not on them may be left out.
// `sums`, per edge, if given: a sum that the pass owns and the cotangent may be added into, in place of giving it.
void node_vjp(Node* node, const bp_value* cotangents, std::vector<Tensor>& out, bool create_graph, const PathsTo* paths,
              const Tensor* const* sums = nullptr);

}  // namespace backplane::core
