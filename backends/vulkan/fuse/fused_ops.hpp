// What the Vulkan backend fuses: the registry's elementwise ops, by the lists that codegen wrote.
#pragma once

#include "backplane/plugin/fused_program.hpp"

namespace backplane::vulkan {

const plugin::FusedOps& fused_ops();

}  // namespace backplane::vulkan
