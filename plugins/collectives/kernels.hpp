#pragma once

#include "backplane/plugin.hpp"

namespace backplane::collectives {

void register_kernels(const plugin::Registrar& registrar);
// Of every backend that the device provider serves.
void register_device_kernels(const plugin::Registrar& registrar);

}  // namespace backplane::collectives
