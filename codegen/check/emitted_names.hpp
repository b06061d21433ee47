// Two words of a registry file that would be one name in a generated one.
#pragma once

#include <memory>
#include <vector>

#include "schema/model.hpp"

namespace backplane::codegen {

// Of the files that are emitted, which share their outputs.
void check_emitted_names(const std::vector<std::unique_ptr<RegistryFile>>& files, Diagnostics& diagnostics);

}  // namespace backplane::codegen
