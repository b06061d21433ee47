// The CUDA C++ of a region's kernel, and the bytes that it is launched with.
//
// A kernel's text depends on its program and on Layout::key() alone, so one serves every size. It has one parameter, a
// struct of the operands' addresses, the numbers and the axes; where that is larger than a launch takes, a pointer to
// it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fuse/layout.hpp"
#include "libraries/nvrtc.hpp"
#include "runtime/arguments.hpp"

namespace backplane::cuda {

inline constexpr char kRegionKernel[] = "region";    // the function's name
inline constexpr size_t kMostParameterBytes = 4096;  // of a launch, on every device and driver

std::string print_region(const plugin::FusedProgram& program, const Layout& layout);
std::vector<std::byte> region_arguments(const plugin::FusedProgram& program, const Layout& layout,
                                        const std::vector<char*>& data);

// What the text includes.
const std::vector<SourceHeader>& region_headers();

}  // namespace backplane::cuda
