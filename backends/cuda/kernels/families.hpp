// The kernel families, one registering function each.
#pragma once

#include "runtime/backend.hpp"

namespace backplane::cuda {

void register_elementwise(plugin::Registrar& registrar);
void register_matmul(plugin::Registrar& registrar);
void register_full(plugin::Registrar& registrar);

}  // namespace backplane::cuda
