// The kernels: every primitive of the registry. All other ops reach the device by decomposition.
//
// Each records its work on the call's stream and returns; nothing of the call is used later but memory, which the host
// keeps.
#pragma once

#include "backplane/plugin.hpp"

namespace minimal {

inline constexpr const char* kName = "minimal";

void register_elementwise(const backplane::plugin::Registrar& registrar);  // what an op does to one element
void register_movement(const backplane::plugin::Registrar& registrar);     // elements that change their places
void register_values(const backplane::plugin::Registrar& registrar);       // what makes and folds elements
void register_lines(const backplane::plugin::Registrar& registrar);        // along an axis, and products

}  // namespace minimal
