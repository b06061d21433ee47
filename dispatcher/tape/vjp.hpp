// One node's share of a backward pass.
#pragma once

#include <vector>

#include "tape/node.hpp"

namespace backplane::core {

// The cotangents of a node's arguments, in the order of its edges; empty slots are zeros.
void node_vjp(Node* node, const bp_value* cotangents, std::vector<Tensor>& out, bool create_graph);

}  // namespace backplane::core
