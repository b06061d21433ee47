// The text of a kernel's shader module in WGSL, made for the dtypes, functions and blocks of a launch.
#pragma once

#include <array>
#include <string>

#include "kernels/launch.hpp"

namespace minimal {

// What a module is made for. `bindings`: where each operand's block is bound; operands in one block share a binding,
// for WebGPU refuses a buffer in two bindings that write.
struct Shader {
  Kernel kernel;
  bp_dtype dtype;  // whose scalar functions are meant
  uint32_t in, out, function, second;
  std::array<uint32_t, kMaxOperands> bindings;
  auto operator<=>(const Shader&) const = default;
};

inline constexpr uint32_t kArgumentsBinding = kMaxOperands, kFaultsBinding = kMaxOperands + 1;
inline constexpr uint32_t kGroup = 64;  // invocations of a workgroup

std::string shader_text(const Shader& shader);

}  // namespace minimal
