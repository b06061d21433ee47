// Whether objects made on a device are still valid: the generations of devices that can be reset.
#pragma once

#include <algorithm>

#include "graph/plans/plan.hpp"
#include "memory/devices/device.hpp"

namespace backplane::core::graph {

inline void note_made_for(std::vector<PlanData::MadeFor>& made_for, Device& device, uint32_t generation) {
  if (!device.backend->extensions.reset) return;
  const auto same = [&](const PlanData::MadeFor& known) {
    return known.device == &device && known.generation == generation;
  };
  if (std::none_of(made_for.begin(), made_for.end(), same)) made_for.push_back({&device, generation});
}

inline void note_made_for(std::vector<PlanData::MadeFor>& made_for, const bp_storage& storage) {
  note_made_for(made_for, *storage.device, storage.generation);
}

inline bool is_current(const std::vector<PlanData::MadeFor>& made_for) {
  return std::all_of(made_for.begin(), made_for.end(), [](const PlanData::MadeFor& made) {
    return made.device->generation.load(std::memory_order_relaxed) == made.generation;
  });
}

}  // namespace backplane::core::graph
