// Which nodes of a graph the fuser claims, and which of them make a region.
#pragma once

#include <vector>

#include "backplane/plugin/regions.hpp"
#include "fuse/node_kind.hpp"

namespace backplane::cpu::fuse {

plugin::Partition partition(const GraphView& graph, bp_device device);

// The space of a region as a graph of its own, as `partition` found it. Throws where the nodes fit none.
Space space_of(const GraphView& region, const std::vector<NodePlan>& plans);

}  // namespace backplane::cpu::fuse
