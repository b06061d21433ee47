#include "registry/op_edges.hpp"

namespace backplane::core {

constinit OpEdge op_edges[kMaxOps] = {};
constinit PackedCall packed_calls[static_cast<size_t>(FastPath::kCount)] = {};

}  // namespace backplane::core
