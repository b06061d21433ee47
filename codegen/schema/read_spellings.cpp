// `spellings` of an entry: what NumPy and PyTorch call it and its arguments. See reader.hpp.
#include <algorithm>

#include "schema/identifiers.hpp"
#include "schema/reader.hpp"
#include "schema/signature.hpp"

namespace backplane::codegen {
namespace {

// `dims: axis`
void read_word(ValueReader& reader, const YamlNode& key, OpSpelling& spelling, const Entry& entry) {
  const int argument = entry.signature.find_arg(spelling.meaning.value);
  if (!is_identifier(spelling.text.value))
    return reader.error(key, "'" + spelling.text.value + "' is not a word and not a signature; write one of both");
  if (entry.signature.find_arg(spelling.text.value) >= 0)
    return reader.error(key, "'" + spelling.text.value + "' is an argument of '" + entry.name() + "'; remove the word");
  if (argument < 0)
    return reader.error(key, "'" + spelling.meaning.value + "' is not an argument of '" + entry.name() +
                                 "'; write the argument that '" + spelling.text.value + "' means");
  spelling.argument = static_cast<uint32_t>(argument);
}

// `max(Tensor x, Axis dim): max_with_indices(x, dim)`
void read_signature(ValueReader& reader, const YamlNode& key, OpSpelling& spelling, const Entry& entry) {
  spelling.signature = parse_spelled_signature(spelling.text, reader.diagnostics());
  spelling.call = parse_formula(spelling.meaning, reader.diagnostics());
  if (!spelling.signature) return;
  const std::string& name = spelling.signature->name;
  const bool is_alias =
      std::any_of(entry.aliases.begin(), entry.aliases.end(), [&](const Text& alias) { return alias.value == name; });
  if (name != entry.name() && !is_alias)
    reader.error(key, "found a spelling of '" + name + "', expected '" + entry.name() + "' or one of its aliases");
}

}  // namespace

void read_spellings(ValueReader& reader, const YamlNode& node, Entry& entry) {
  if (!reader.expect_map(node, "'spellings'")) return;
  for (const auto& [key, value] : node.entries) {
    if (!reader.expect_scalar(*key, "a spelling") || !reader.expect_scalar(*value, "a spelling's meaning")) continue;
    OpSpelling& spelling = entry.spellings.emplace_back();
    spelling.where = key->location();
    spelling.text = key->text;
    spelling.meaning = value->text;
    const bool is_signature = spelling.text.value.find('(') != std::string::npos;
    (is_signature ? read_signature : read_word)(reader, *key, spelling, entry);
  }
}

}  // namespace backplane::codegen
