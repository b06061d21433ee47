// SYMBOL_formulas.c and .h: straight-line C for formulas that need no list arithmetic.
#include "emit/emit.hpp"

namespace backplane::codegen {

std::string native_name(const EmitContext&, const CompiledOp&, size_t) { return ""; }

}  // namespace backplane::codegen
