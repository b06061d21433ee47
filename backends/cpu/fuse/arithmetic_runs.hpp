// Which instructions become machine code.
#pragma once

#include "fuse/program.hpp"

namespace backplane::cpu::fuse {

// Puts one instruction in the place of two or more that follow each other in one part, and are arithmetic of one dtype
// over elements. `code` lies part by part. Without machine code, nothing changes.
void join_arithmetic(Program& program, std::vector<Instruction>& code);

}  // namespace backplane::cpu::fuse
