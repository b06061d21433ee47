// The kernel families, one registering function each. Rows carry the backend as their context.
#pragma once

#include "runtime/backend.hpp"

namespace backplane::vulkan {

void register_elementwise(plugin::Registrar& registrar, Backend& backend);
void register_matmul(plugin::Registrar& registrar, Backend& backend);
void register_full(plugin::Registrar& registrar, Backend& backend);

}  // namespace backplane::vulkan
