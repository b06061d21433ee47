// The device's generator, and what PyTorch asks of the device.
#pragma once

#include <ATen/core/Generator.h>

namespace backplane_torch {

// The generator of PyTorch's CPU from which one of the device draws; an undefined one stays so.
std::optional<at::Generator> host_generator(const std::optional<at::Generator>& generator);
void register_hooks();

}  // namespace backplane_torch
