// SYMBOL_formulas.c and .h: straight-line C for formulas that need no list arithmetic.
#include "emit/emit.hpp"

namespace backplane::codegen {

std::string native_name(const EmitContext&, const CompiledOp&, size_t) { return ""; }

void emit_formulas(const EmitContext& context, OutputSet& out) {
  const std::string guard = "BACKPLANE_GENERATED_" + context.symbol + "_FORMULAS_H";
  out.add(context.symbol + "_formulas.h",
          file_banner("/* ", "Native formulas of namespace " + context.ns + ".", context, " */") + "#ifndef " + guard + "\n#define " + guard +
              "\n\n#include \"backplane/abi/host.h\"\n\n#endif\n");
  out.add(context.symbol + "_formulas.c",
          file_banner("/* ", "Native formulas of namespace " + context.ns + ".", context, " */") + "#include \"" + context.symbol + "_formulas.h\"\n");
}

}  // namespace backplane::codegen
