// The kernels: every primitive of the registry, and nothing else. All other ops reach the device by decomposition.
#pragma once

#include "backplane/plugin.hpp"
#include "backplane/plugin/element.hpp"
#include "backplane/plugin/loop.hpp"

namespace minimal {

using namespace backplane::plugin;

inline constexpr const char* kName = "minimal";  // of the backend

void register_elementwise(const Registrar& registrar);  // what an op does to one element, over whole tensors
void register_movement(const Registrar& registrar);     // elements that change their places
void register_values(const Registrar& registrar);       // what makes, converts, folds and orders elements
void register_matmul(const Registrar& registrar);

}  // namespace minimal
