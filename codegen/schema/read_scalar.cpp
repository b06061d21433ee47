// `scalar:`, what an elementwise op does to one element; see docs/reference/ops-yaml.md.
#include "schema/reader.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

// The dtypes of a key: a class, a dtype, or several with commas between them.
bp_dtype_mask read_mask(ValueReader& reader, const YamlNode& key) {
  TokenStream tokens(key.text, reader.diagnostics());
  bp_dtype_mask mask = 0;
  do {
    const Token word = tokens.take();
    if (const DtypeClass* found = find_dtype_class(word.text)) {
      mask |= found->mask;
    } else if (const int dtype = find_dtype(word.text); dtype >= 0) {
      mask |= BP_DTYPE_BIT(dtype);
    } else {
      std::vector<std::string_view> names;
      for (const DtypeClass& known : dtype_classes()) names.push_back(known.name);
      tokens.error(word, "unknown dtype class " + quoted(word) + suggestion(word.text, names) + "; classes are " +
                             listed(names) + ", or a dtype's name");
    }
  } while (tokens.accept(","));
  return mask;
}

void add_rule(ValueReader& reader, const YamlNode& value, bp_dtype_mask mask, const Location& where, Entry& entry) {
  if (!reader.expect_scalar(value, "scalar")) return;
  entry.scalars.push_back({mask, where, value.text, parse_formula(value.text, reader.diagnostics())});
}

}  // namespace

void read_scalar(ValueReader& reader, const YamlNode& node, Entry& entry) {
  entry.states_scalar = true;
  if (!node.is(YamlNode::Kind::kMap)) return add_rule(reader, node, BP_MASK_ANY, node.location(), entry);
  if (node.entries.size() == 1 && node.entries[0].first->text.value == "none") {
    const YamlNode& reason = *node.entries[0].second;
    if (!reason.is(YamlNode::Kind::kScalar) || reason.text.empty())
      reader.error(node, "the refusal has no reason; write {none: why}");
    return;
  }
  for (const auto& [key, value] : node.entries)
    add_rule(reader, *value, read_mask(reader, *key), key->location(), entry);
}

}  // namespace backplane::codegen
