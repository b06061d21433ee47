// SYMBOL_spellings.hpp: further words and signatures of ops as tables, for python/bindings/ops/spellings.cpp.
#include "backplane/abi/signature.h"
#include "emit/emit.hpp"

namespace backplane::codegen {
namespace {

std::string python_default(const Literal& value) {
  if (value.kind == Literal::Kind::kNone) return "None";
  if (value.kind == Literal::Kind::kBool) return value.integer ? "True" : "False";
  if (value.kind == Literal::Kind::kInts) return std::to_string(value.ints[0]);
  return value.kind == Literal::Kind::kString ? python_string(value.text) : value.text;
}

// max(x, dim, *, keepdim=False)
std::string python_signature(const Signature& signature) {
  std::string text;
  bool star = false;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  for (const Arg& arg : signature.args) {
    if (arg.has(BP_ARG_KEYWORD_ONLY) && !star) add("*");
    star = star || arg.has(BP_ARG_KEYWORD_ONLY);
    add(arg.name + (arg.has(BP_ARG_HAS_DEFAULT) ? "=" + python_default(arg.default_value) : ""));
  }
  return signature.name + "(" + text + ")";
}

class SpellingWriter {
 public:
  void add(const CompiledSpelling& spelling) {
    const std::string op = c_string(spelling.entry->full_name);
    if (spelling.nodes.empty()) {
      words_ += "    {" + op + ", " + c_string(spelling.stated->text.value) + ", " +
                std::to_string(spelling.stated->argument) + "},\n";
      return;
    }
    const Signature& signature = *spelling.stated->signature;
    const size_t first_parameter = n_parameters_, first_node = n_nodes_;
    for (const Arg& parameter : signature.args) add(parameter);
    for (const SpellingNode& node : spelling.nodes) add(node);
    calls_ += "    {" + op + ", " + c_string(signature.name) + ", " + c_string(python_signature(signature)) + ", " +
              std::to_string(first_parameter) + ", " + std::to_string(signature.args.size()) + ", " +
              std::to_string(first_node) + ", " + std::to_string(spelling.nodes.size()) + "},\n";
  }

  // Each table ends in a row of zeros, so that none is empty.
  std::string text() const {
    return "inline constexpr SpelledWord kSpelledWords[] = {\n" + words_ + "    {}};\n" +
           "inline constexpr SpelledParameter kSpelledParameters[] = {\n" + parameters_ + "    {}};\n" +
           "inline constexpr SpelledInput kSpelledInputs[] = {\n" + inputs_ + "    {}};\n" +
           "inline constexpr SpelledNode kSpelledNodes[] = {\n" + nodes_ + "    {}};\n" +
           "inline constexpr SpelledCall kSpelledCalls[] = {\n" + calls_ + "    {}};\n";
  }

 private:
  void add(const Arg& parameter) {
    const bool has_value = parameter.has(BP_ARG_HAS_DEFAULT) && parameter.default_value.kind != Literal::Kind::kNone;
    parameters_ += "    {" + c_string(parameter.name) + ", " + std::to_string(parameter.type) + ", " +
                   std::to_string(parameter.flags) + ", " + dtypes(parameter) + ", " +
                   literal(has_value ? parameter.default_value : Literal()) + "},\n";
    ++n_parameters_;
  }

  void add(const SpellingNode& node) {
    static constexpr const char* kKinds[] = {"kParameter", "kLiteral", "kCall"};
    const size_t first_input = n_inputs_;
    for (const auto& [argument, input] : node.inputs) {
      inputs_ += "    {" + std::to_string(argument) + ", " + std::to_string(input) + "},\n";
      ++n_inputs_;
    }
    nodes_ += "    {SpelledNode::" + std::string(kKinds[static_cast<int>(node.kind)]) + ", " +
              std::to_string(node.parameter) + ", " + std::to_string(first_input) + ", " +
              std::to_string(node.inputs.size()) + ", " + (node.op ? c_string(node.op->full_name) : "nullptr") + ", " +
              literal(node.literal) + "},\n";
    ++n_nodes_;
  }

  static std::string dtypes(const Arg& parameter) {
    const std::string& only = parameter.only;
    const char* word = only == "bool"      ? "kBools"
                       : only == "integer" ? "kIntegers"
                       : only == "complex" ? "kComplex"
                                           : "kAll";
    return "SpelledParameter::" + std::string(word);
  }

  // A list of one int is written as this int, as Python's callers may.
  static std::string literal(const Literal& value) {
    using Kind = Literal::Kind;
    const bool is_list = value.kind == Kind::kInts;
    const char* kind = value.kind == Kind::kBool             ? "kBool"
                       : value.kind == Kind::kInt || is_list ? "kInt"
                       : value.kind == Kind::kFloat          ? "kFloat"
                       : value.kind == Kind::kString         ? "kText"
                       : value.kind == Kind::kDtype          ? "kDtype"
                                                             : "kNone";
    return "{SpelledLiteral::" + std::string(kind) + ", " + c_int(is_list ? value.ints[0] : value.integer) + ", " +
           c_double(value.number) + ", " + (value.kind == Kind::kString ? c_string(value.text) : "nullptr") + "}";
  }

  std::string words_, parameters_, inputs_, nodes_, calls_;
  size_t n_parameters_ = 0, n_inputs_ = 0, n_nodes_ = 0;
};

}  // namespace

void emit_spellings(const EmitContext& context, OutputSet& out) {
  if (context.registry.spellings.empty()) return;
  SpellingWriter writer;
  for (const CompiledSpelling& spelling : context.registry.spellings) writer.add(spelling);
  out.add(context.symbol + "_spellings.hpp",
          file_banner("// ", "Further words and signatures of ops.", context, "") +
              "#pragma once\n\n#include <cmath>\n\n#include \"bindings/ops/spelling_table.hpp\"\n\n" +
              "namespace backplane::python {\n\n" + writer.text() + "\n}  // namespace backplane::python\n");
}

}  // namespace backplane::codegen
