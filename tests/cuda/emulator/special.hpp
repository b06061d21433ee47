// What an instruction may name beside registers and numbers: handlers that put it into a register when a function is
// entered.
#pragma once

#include "lanes.hpp"

namespace emulator {

// By name: "%tid.x".
const Handlers& special_registers();

// Of an entry's parameter, and of a variable in local memory, at the instruction's offset.
void parameter_address(Warp& warp, const Instruction& instruction);
void local_address(Warp& warp, const Instruction& instruction);

}  // namespace emulator
