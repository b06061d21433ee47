// The device's generator, and what PyTorch asks of the device.
#pragma once

#include <ATen/core/Generator.h>

namespace backplane_torch {

// The generator of PyTorch's CPU from which a generator of the device draws; undefined for an undefined one.
std::optional<at::Generator> host_generator(const std::optional<at::Generator>& generator);
void register_hooks();

}  // namespace backplane_torch
