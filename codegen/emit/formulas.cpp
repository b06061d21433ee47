// SYMBOL_formulas.c and .h: straight-line C for the formulas that need no list arithmetic.
#include "emit/emit.hpp"
#include "emit/formula_writer.hpp"

namespace backplane::codegen {
namespace {

std::optional<std::string> function_of(const EmitContext& context, const CompiledOp& op, size_t formula) {
  const size_t index = static_cast<size_t>(&op - context.registry.ops.data());
  const std::string name = context.symbol + "_op" + std::to_string(index) + "_formula" + std::to_string(formula);
  const CompiledFormula& compiled = op.formulas[formula];
  return FormulaWriter(context.registry, op, compiled).write(name);
}

}  // namespace

std::string native_name(const EmitContext& context, const CompiledOp& op, size_t formula) {
  if (!context.natives) return "";
  const std::optional<std::string> text = function_of(context, op, formula);
  if (!text) return "";
  const size_t begin = text->find("BP_CALL ") + 8;
  return text->substr(begin, text->find('(', begin) - begin);
}

void emit_formulas(const EmitContext& context, OutputSet& out) {
  static constexpr const char* kRules[] = {"", "vjp", "jvp", "decompose", "batch", "put", "shape"};
  const std::string guard = "BACKPLANE_GENERATED_" + context.symbol + "_FORMULAS_H";
  std::string header =
      file_banner("/* ", "Native forms of the formulas of namespace " + context.ns + ".", context, " */");
  header += "#ifndef " + guard + "\n#define " + guard +
            "\n\n#include \"backplane/abi/host.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  std::string source = file_banner(
      "/* ", "Native forms of the formulas of namespace " + context.ns + ", equal to the evaluator's bit for bit.",
      context, " */");
  source += "#include \"" + context.symbol +
            "_formulas.h\"\n\n#include <math.h>\n\n#include \"backplane/plugin/formula.h\"\n";
  for (const CompiledOp& op : context.registry.ops) {
    for (size_t i = 0; i < op.formulas.size(); ++i) {
      const std::optional<std::string> text = function_of(context, op, i);
      if (!text) continue;
      std::string formula = op.formulas[i].text;
      for (size_t at = 0; (at = formula.find("*/", at)) != std::string::npos;) formula.replace(at, 2, "* /");
      for (char& c : formula)
        if (c == '\n') c = ' ';
      source += "\n/* " + op.entry->full_name + ", " + kRules[op.formulas[i].rule] + ": " + comment(formula) + " */\n" +
                *text;
      header += text->substr(0, text->find(" {\n")) + ";\n";
    }
  }
  header += "\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
  out.add(context.symbol + "_formulas.h", header);
  out.add(context.symbol + "_formulas.c", source);
}

}  // namespace backplane::codegen
