// `rewrites` of a registry file: the rules of graphs. See reader.hpp.
#include "schema/reader.hpp"

namespace backplane::codegen {
namespace {

void read_rewrite(ValueReader& reader, const YamlNode& node, RegistryFile& file) {
  Rewrite rewrite;
  rewrite.where = node.location();
  const auto formula = [&](const char* key, Text& text, ExprPtr& expr) {
    const YamlNode* found = node.find(key);
    if (!found) return reader.error(node, std::string("a rewrite needs '") + key + "', a formula");
    if (!reader.expect_scalar(*found, key)) return;
    text = found->text;
    expr = parse_formula(text, reader.diagnostics());
  };
  formula("from", rewrite.from, rewrite.from_expr);
  formula("to", rewrite.to, rewrite.to_expr);
  if (const YamlNode* when = node.find("when")) rewrite.when = reader.read_words(*when, "when");
  for (const Text& condition : rewrite.when)
    rewrite.when_exprs.push_back(parse_formula(condition, reader.diagnostics()));
  for (const auto& [key, value] : node.entries)
    if (const std::string& word = key->text.value; word != "from" && word != "to" && word != "when")
      reader.error(*key, "unknown key '" + word + "'; a rewrite has 'from', 'to' and 'when'");
  file.rewrites.push_back(std::move(rewrite));
}

}  // namespace

void read_rewrites(ValueReader& reader, const YamlNode& node, RegistryFile& file) {
  if (!node.is(YamlNode::Kind::kList))
    return reader.error(node, "'rewrites' must be a list of rules, e.g. [{from: '--x', to: x}]");
  for (const YamlNode* item : node.items)
    if (reader.expect_map(*item, "a rewrite")) read_rewrite(reader, *item, file);
}

}  // namespace backplane::codegen
