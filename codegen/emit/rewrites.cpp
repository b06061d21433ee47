// SYMBOL_rewrites.hpp: the rules of graphs as tables, for dispatcher/graph/passes/rewrite.cpp.
#include <map>

#include "emit/emit.hpp"

namespace backplane::codegen {
namespace {

std::string constant_of(const std::string& word) {
  std::string name = "k";
  bool upper = true;
  for (const char c : word) {
    if (c != '_') name += upper ? static_cast<char>(c - 'a' + 'A') : c;
    upper = c == '_';
  }
  return name;
}

class RewriteWriter {
 public:
  void add(const CompiledRewrite& rule) {
    const size_t first = n_nodes_;
    for (const PatternNode& node : rule.nodes) add(node, first);
    const size_t first_condition = n_conditions_;
    for (const uint32_t condition : rule.when) {
      conditions_ += std::to_string(first + condition) + ", ";
      ++n_conditions_;
    }
    const std::string text = rule.stated->from.value + " -> " + rule.stated->to.value;
    rules_ += "    {" + c_string(text) + ", " + std::to_string(first + rule.from) + ", " +
              std::to_string(first + rule.to) + ", " + std::to_string(first_condition) + ", " +
              std::to_string(rule.when.size()) + ", " + std::to_string(rule.names.size()) + "},\n";
    ++n_rules_;
  }

  std::string text() const {
    return "inline constexpr PatternNode kPatternNodes[] = {\n" + nodes_ + "};\n" +
           "inline constexpr uint16_t kPatternInputs[] = {" + inputs_ + "0};\n" +
           "inline constexpr uint16_t kConditions[] = {" + conditions_ + "0};\n" +
           "inline constexpr RewriteRule kRewriteRules[] = {\n" + rules_ + "};\n";
  }

 private:
  void add(const PatternNode& node, size_t first) {
    using Kind = PatternNode::Kind;
    std::string payload = std::to_string(node.index);
    const char* kind = "kName";
    if (node.kind == Kind::kNumber) kind = "kNumber";
    if (node.kind == Kind::kDtype) kind = "kDtype";
    if (node.kind == Kind::kCall) kind = "kCall";
    if (node.kind == Kind::kFunction) {
      kind = "kFunction";
      payload = "static_cast<uint16_t>(RewriteWord::" + constant_of(node.op) + ")";
    }
    nodes_ += "    {PatternNode::" + std::string(kind) + ", " + std::to_string(node.inputs.size()) + ", " +
              std::to_string(n_inputs_) + ", " + payload + ", " + c_double(node.number) + ", " +
              (node.kind == Kind::kCall ? c_string(node.op) : "nullptr") + "},\n";
    for (const uint32_t input : node.inputs) {
      inputs_ += std::to_string(input == PatternNode::kDefault ? input : first + input) + ", ";
      ++n_inputs_;
    }
    ++n_nodes_;
  }

  std::string nodes_, inputs_, conditions_, rules_;
  size_t n_nodes_ = 0, n_inputs_ = 0, n_conditions_ = 0, n_rules_ = 0;
};

}  // namespace

void emit_rewrites(const EmitContext& context, OutputSet& out) {
  if (context.registry.rewrites.empty()) return;
  RewriteWriter writer;
  for (const CompiledRewrite& rule : context.registry.rewrites) writer.add(rule);
  out.add(context.symbol + "_rewrites.hpp", file_banner("// ", "The rules of graphs.", context, "") +
                                                "#pragma once\n\n#include \"graph/passes/rewrite_rules.hpp\"\n\n" +
                                                "namespace backplane::core::graph {\n\n" + writer.text() +
                                                "\n}  // namespace backplane::core::graph\n");
}

}  // namespace backplane::codegen
