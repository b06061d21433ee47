#pragma once

#include "backplane/plugin.hpp"

namespace backplane::collectives {

void register_kernels(const plugin::Registrar& registrar);

}  // namespace backplane::collectives
