// The order of a region's instructions, and where what passes between them lies.
#pragma once

#include "fuse/program.hpp"

namespace backplane::cpu::fuse {

// Joins the chains of `code`, in the order of the nodes, puts it into the program's parts, and gives buffers to slots;
// values that do not live at one time share one.
void schedule(Program& program, std::vector<Instruction> code);

}  // namespace backplane::cpu::fuse
