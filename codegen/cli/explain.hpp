// `--explain OP`: the stated rules, the derived rules, and codegen's outputs.
#pragma once

#include <iosfwd>
#include <string>

#include "check/compiled.hpp"

namespace backplane::codegen {

// False, with a message in `errors`, where there is no such op among those that are emitted.
bool explain(const CompiledRegistry& registry, const std::string& name, std::ostream& out, std::ostream& errors);

// A node as an expression over the program's names, e.g. "FIT x (bp::multiply(g, bp::cos(x)))".
std::string render(const CompiledOp& op, uint32_t node);

}  // namespace backplane::codegen
