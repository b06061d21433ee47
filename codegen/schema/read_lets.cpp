// Names that are stated once: `let` of an entry, for all of its rules; `tables` and `define` of a file. See reader.hpp.
#include <algorithm>

#include "schema/identifiers.hpp"
#include "schema/lexer.hpp"
#include "schema/reader.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

// False, with an error, where formulas could not write `name`, or would mean something else by it.
bool may_name(ValueReader& reader, const YamlNode& at, const char* what) {
  const std::string& name = at.text.value;
  if (!is_identifier(name)) {
    reader.error(at, std::string(what) + " '" + name + "' is not a name; use letters, digits and _");
    return false;
  }
  // An argument may be called b, since the formulas of its entry know it; a name for all of them may not hide b.x.
  if (!is_reserved_name(name) && name != "b" && find_dtype(name) < 0) return true;
  reader.error(at, "'" + name + "' has a meaning of its own in formulas; choose another name");
  return false;
}

void read_let(ValueReader& reader, const YamlNode& name, const YamlNode& value, Entry& entry) {
  if (!may_name(reader, name, "let") || !reader.expect_scalar(value, "let")) return;
  if (entry.signature.find_arg(name.text.value) >= 0) {
    reader.error(name, "'" + name.text.value + "' is an argument of '" + entry.name() + "'; choose another name");
    return;
  }
  const bool twice = std::any_of(entry.lets.begin(), entry.lets.end(),
                                 [&](const Let& let) { return let.name.value == name.text.value; });
  if (twice) {
    reader.error(name, "let '" + name.text.value + "' stands twice; rename one");
    return;
  }
  entry.lets.push_back({name.text, value.text, parse_formula(value.text, reader.diagnostics())});
}

// "name(x, y)". False, with an error, where that cannot be read.
bool read_head(ValueReader& reader, const YamlNode& key, Definition& definition) {
  TokenStream tokens(key.text, reader.diagnostics());
  const auto word = [&](const char* what) {
    const Token token = tokens.take();
    if (token.kind != Token::Kind::kName)
      tokens.error(token, "found " + quoted(token) + "; expected " + what + ", as in `halves(x, y)`");
    else if (is_reserved_name(token.text) || find_dtype(token.text) >= 0)
      tokens.error(token, quoted(token) + " has a meaning of its own in formulas; choose another name");
    return std::string(token.text);
  };
  definition.word = word("the name of a definition");
  tokens.expect("(", "before the parameters");
  do {
    const Token at = tokens.peek();
    definition.params.push_back(word("a parameter"));
    if (std::count(definition.params.begin(), definition.params.end(), definition.params.back()) > 1)
      tokens.error(at, "parameter " + quoted(at) + " stands twice; rename one");
  } while (!tokens.failed() && tokens.accept(","));
  tokens.expect(")", "to close the parameters");
  if (!tokens.failed() && !tokens.at_end())
    tokens.error(tokens.peek(), "found " + quoted(tokens.peek()) + " after the parameters; remove it");
  return !tokens.failed();
}

}  // namespace

// A map, or a list of maps, so that entries may share some of them by an alias.
void read_lets(ValueReader& reader, const YamlNode& node, Entry& entry) {
  std::vector<const YamlNode*> maps = {&node};
  if (node.is(YamlNode::Kind::kList)) maps = node.items;
  for (const YamlNode* map : maps) {
    if (!reader.expect_map(*map, "'let'")) continue;
    for (const auto& [name, value] : map->entries) read_let(reader, *name, *value, entry);
  }
}

void read_tables(ValueReader& reader, const YamlNode& node, SharedNames& shared) {
  if (!reader.expect_map(node, "'tables'")) return;
  for (const auto& [name, values] : node.entries) {
    if (!may_name(reader, *name, "table")) continue;
    if (!values->is(YamlNode::Kind::kList) || values->items.empty()) {
      reader.error(*values, "table '" + name->text.value + "' must be a list of numbers");
      continue;
    }
    Table table;
    table.name = name->text;
    table.list = std::make_unique<Expr>();
    table.list->kind = Expr::Kind::kList;
    for (const YamlNode* value : values->items) {
      ExprPtr number = value->is(YamlNode::Kind::kScalar) ? parse_formula(value->text, reader.diagnostics()) : nullptr;
      if (number && (number->kind == Expr::Kind::kInt || number->kind == Expr::Kind::kFloat))
        table.list->children.push_back(std::move(number));
      else
        reader.error(*value, "table '" + name->text.value + "' holds something that is not a number; write a literal");
    }
    const auto [known, inserted] = shared.tables.emplace(name->text.value, std::move(table));
    if (!inserted) {
      const Location first = known->second.name.location();
      reader.error(*name, "table '" + name->text.value + "' stands twice, first at " + std::string(first.file) + ":" +
                              std::to_string(first.line) + "; rename one");
    }
  }
}

void read_definitions(ValueReader& reader, const YamlNode& node, SharedNames& shared) {
  if (!reader.expect_map(node, "'define'")) return;
  for (const auto& [key, value] : node.entries) {
    Definition definition;
    definition.name = key->text;
    if (!read_head(reader, *key, definition) || !reader.expect_scalar(*value, "define")) continue;
    if (const Definition* first = shared.find_definition(definition.word)) {
      const Location where = first->name.location();
      reader.error(*key, "'" + definition.word + "' is defined twice, first at " + std::string(where.file) + ":" +
                             std::to_string(where.line) + "; rename one");
      continue;
    }
    definition.text = value->text;
    definition.expr = parse_formula(value->text, reader.diagnostics());
    shared.definitions.push_back(std::move(definition));
  }
}

}  // namespace backplane::codegen
