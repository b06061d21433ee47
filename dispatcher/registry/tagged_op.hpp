// Ops that parts of the core above the call need, by the tags of their entries: those of registry.hpp's roles that
// every program needs are found faster.
#pragma once

#include "registry/registry.hpp"

namespace backplane::core {

// The first op with the tag, as in "role:scan". Throws if no op has it.
const OpEntry& tagged_op(std::string_view tag);

}  // namespace backplane::core
