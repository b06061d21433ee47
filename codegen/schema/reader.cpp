// The keys of an entry; the file, dtypes, rules and samples are read in files of their own. See reader.hpp.
#include "schema/reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "schema/identifiers.hpp"
#include "schema/padded.hpp"
#include "schema/signature.hpp"
#include "schema/view_formulas.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

bool one_of(std::string_view word, const std::vector<std::string_view>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class EntryReader {
 public:
  EntryReader(ValueReader& reader, const YamlNode& node, Entry& entry) : reader_(reader), node_(node), entry_(entry) {}

  void read() {
    entry_.where = node_.location();
    check_keys();
    if (!read_signature()) {
      entry_.damaged = true;
      return;
    }
    if (states_largest_size(node_.find("shape"))) make_padded(reader_, entry_);
    read_text("doc", entry_.doc, true);
    read_flags();
    read_operator();
    read_choices();
    if (const YamlNode* args = node_.find("args")) read_arguments(reader_, *args, entry_);
    read_alias();
    read_variants();
    if (const YamlNode* let = node_.find("let")) read_lets(reader_, *let, entry_);
    read_dtypes(reader_, node_.find("dtypes"), entry_);
    if (!entry_.padded.empty()) add_count(entry_);
    read_shapes();
    read_nondiff();
    read_rules(reader_, node_, entry_);
    expand_view_formulas(reader_, entry_);
    if (const YamlNode* scalar = node_.find("scalar")) read_scalar(reader_, *scalar, entry_);
    read_words();
    if (const YamlNode* faults = node_.find("faults")) read_faults(reader_, *faults, entry_);
    if (const YamlNode* region = node_.find("region")) read_region(reader_, *region, entry_);
    if (const YamlNode* fuzz = node_.find("fuzz")) read_fuzz(reader_, *fuzz, entry_);
    if (const YamlNode* spellings = node_.find("spellings")) read_spellings(reader_, *spellings, entry_);
    read_samples(reader_, node_.find("samples"), node_.find("large"), entry_);
  }

 private:
  void check_keys() {
    for (const auto& [key, value] : node_.entries) {
      const std::string& word = key->text.value;
      if (key->is(YamlNode::Kind::kScalar) && !one_of(word, entry_keys()))
        reader_.error(*key, "unknown key '" + word + "'" + suggestion(word, entry_keys()) +
                                "; keys are listed in docs/reference/ops-yaml.md");
    }
  }

  bool read_signature() {
    const YamlNode* op = node_.find("op");
    if (!op) {
      reader_.error(node_, "the entry has no 'op'; start it with `op: name(Tensor x) -> Tensor`");
      return false;
    }
    if (!reader_.expect_scalar(*op, "op")) return false;
    entry_.where = op->location();
    std::optional<Signature> signature = parse_signature(op->text, reader_.diagnostics());
    if (!signature) return false;
    entry_.signature = std::move(*signature);
    entry_.full_name = entry_.ns + "::" + entry_.signature.name;
    return true;
  }

  void read_text(const char* key, Text& out, bool required) {
    const YamlNode* value = node_.find(key);
    if (value && reader_.expect_scalar(*value, key)) out = value->text;
    if (required && (!value || (value->is(YamlNode::Kind::kScalar) && value->text.empty())))
      reader_.diagnostics().error(entry_.where, "'" + entry_.name() + "' has no '" + key + "'; write one line");
    if (required && out.value.find('\n') != std::string::npos)
      reader_.error(*value, "'" + std::string(key) + "' has several lines; write one");
  }

  bool flag(const char* key) {
    const YamlNode* value = node_.find(key);
    return value && reader_.read_bool(*value, key);
  }

  // true, or "unless ARGUMENT": where that bool is true, it computes.
  void read_moves() {
    const YamlNode* value = node_.find("moves");
    if (!value) return;
    constexpr std::string_view kUnless = "unless ";
    if (!value->is(YamlNode::Kind::kScalar) || !value->text.value.starts_with(kUnless)) {
      entry_.moves = reader_.read_bool(*value, "moves");
      return;
    }
    entry_.moves = true;
    const std::string name = value->text.value.substr(kUnless.size());
    const auto& args = entry_.signature.args;
    const auto at = std::find_if(args.begin(), args.end(), [&](const Arg& a) { return a.name == name; });
    if (at == args.end() || at->type != BP_TYPE_BOOL || at - args.begin() >= 64)
      return reader_.error(*value, "'moves' names '" + name + "', which is not a bool argument of the op");
    entry_.computes_where = uint64_t{1} << (at - args.begin());
  }

  void read_flags() {
    entry_.host = flag("host");
    read_moves();
    entry_.random = flag("random");
    if (const YamlNode* kind = node_.find("kind")) {
      entry_.composite = kind->text.value == "composite";
      if (!entry_.composite)
        reader_.error(*kind, "unknown kind '" + kind->text.value + "'; the only one is 'composite'");
    }
    if (const YamlNode* zeros = node_.find("zeros")) {
      entry_.pass_zeros = zeros->text.value == "pass";
      if (!entry_.pass_zeros) reader_.error(*zeros, "'zeros' is '" + zeros->text.value + "'; the only value is 'pass'");
    }
    read_text("primitive", entry_.family, false);
    if (!entry_.family.empty() && !is_identifier(entry_.family.value))
      reader_.error(*node_.find("primitive"),
                    "'" + entry_.family.value + "' names no family; write a word such as unary, binary or reduce");
  }

  // Formulas write it between, or at, the op's first arguments; what follows those takes its defaults.
  void read_operator() {
    read_text("operator", entry_.operator_symbol, false);
    if (entry_.operator_symbol.empty()) return;
    const YamlNode& at = *node_.find("operator");
    const size_t operands = entry_.operands();
    std::vector<std::string_view> symbols;
    for (const OperatorWord& word : operator_words()) {
      if (word.operands == operands) symbols.push_back(word.symbol);
    }
    const bool fits = entry_.signature.results.size() == 1 && !entry_.signature.results[0].is_list;
    if (symbols.empty() || !fits)
      reader_.error(at, "'" + entry_.name() +
                            "' is not an operator; one takes one or two Tensors, has defaults for all " +
                            "else, and gives a Tensor");
    else if (!one_of(entry_.operator_symbol.value, symbols))
      reader_.error(at, "'" + entry_.operator_symbol.value + "' is not an operator of " + std::to_string(operands) +
                            (operands == 1 ? " Tensor" : " Tensors") + "; operators are " + listed(symbols));
  }

  // `choices: {mode: [constant, reflect]}`: the words that a str takes.
  void read_choices() {
    const YamlNode* choices = node_.find("choices");
    if (!choices || !reader_.expect_map(*choices, "'choices'")) return;
    for (const auto& [key, value] : choices->entries) {
      const int index = entry_.signature.find_arg(key->text.value);
      if (index < 0 || entry_.signature.args[static_cast<size_t>(index)].type != BP_TYPE_STR) {
        reader_.error(*key, "'" + key->text.value + "' is not a str argument of '" + entry_.name() + "'; remove it");
        continue;
      }
      Arg& arg = entry_.signature.args[static_cast<size_t>(index)];
      arg.choices = reader_.read_words(*value, "choices");
      if (arg.choices.empty()) reader_.error(*value, "'" + arg.name + "' has no choices; write at least one word");
      for (auto word = arg.choices.begin(); word != arg.choices.end(); ++word)
        if (std::any_of(arg.choices.begin(), word, [&](const Text& before) { return before.value == word->value; }))
          reader_.error(*value, "'" + word->value + "' stands twice among the choices of '" + arg.name + "'; keep one");
      const bool has_default = arg.has(BP_ARG_HAS_DEFAULT) && arg.default_value.kind == Literal::Kind::kString;
      if (has_default && !arg.may_be(arg.default_value.text))
        reader_.error(*key,
                      "the default of '" + arg.name + "', '" + arg.default_value.text + "', is not among its choices");
    }
  }

  void read_alias() {
    const YamlNode* alias = node_.find("alias");
    if (!alias || !reader_.expect_scalar(*alias, "alias")) return;
    std::string_view name = alias->text.value;
    const bool maybe = name.substr(0, 6) == "maybe ";
    if (maybe) name.remove_prefix(6);
    const int arg = entry_.signature.find_arg(name);
    if (arg < 0 || !entry_.signature.args[static_cast<size_t>(arg)].is_tensor()) {
      reader_.error(*alias, "'alias' names '" + std::string(name) +
                                "', which is not a Tensor argument; write the argument that is viewed");
      return;
    }
    entry_.alias = static_cast<uint32_t>(arg);
    entry_.view = !maybe;
    entry_.maybe_view = maybe;
  }

  void read_variants() {
    entry_.inplace = entry_.signature.changes;
    const YamlNode* variants = node_.find("variants");
    if (!variants) return;
    for (const Text& word : reader_.read_words(*variants, "variants")) {
      if (word.value == "inplace")
        entry_.inplace = true;
      else if (word.value == "out")
        entry_.out_variant = true;
      else
        reader_.diagnostics().error(word.location(),
                                    "unknown variant '" + word.value + "'; variants are inplace and out");
    }
  }

  // What an op changes keeps its shape.
  void read_shapes_of_changes() {
    for (const ResultSpec& result : entry_.signature.results) {
      Text text = entry_.signature.text;
      text.value = (entry_.signature.results.size() == 1 ? entry_.signature.args[0].name : result.name) + ".shape";
      entry_.shapes.push_back({text, parse_formula(text, reader_.diagnostics())});
    }
  }

  void read_shapes() {
    const YamlNode* shape = node_.find("shape");
    if (!shape && entry_.signature.changes) return read_shapes_of_changes();
    if (!shape) {
      reader_.diagnostics().error(
          entry_.where, "'" + entry_.name() + "' has no 'shape'; write a word of the vocabulary, e.g. broadcast(x)");
      return;
    }
    const size_t n_results = entry_.padded.empty() ? entry_.signature.results.size() : entry_.padded.size();
    const bool several = n_results > 1;
    std::vector<const YamlNode*> texts;
    if (shape->is(YamlNode::Kind::kList))
      texts.assign(shape->items.begin(), shape->items.end());
    else
      texts.push_back(shape);
    // A flow list of ints is one shape formula, not a list of rules.
    if (!several && shape->is(YamlNode::Kind::kList) && texts.size() != 1) {
      reader_.error(*shape, "a shape given as a list of sizes needs quotes: shape: '[...]'");
      return;
    }
    for (const YamlNode* text : texts) {
      if (!reader_.expect_scalar(*text, "shape")) continue;
      entry_.shapes.push_back({text->text, parse_formula(text->text, reader_.diagnostics())});
    }
    if (entry_.shapes.size() == 1 && entry_.shapes[0].expr && several && !shape->is(YamlNode::Kind::kList)) {
      for (size_t i = 1; i < n_results; ++i)
        entry_.shapes.push_back({entry_.shapes[0].text, copy(*entry_.shapes[0].expr)});
    }
    if (entry_.shapes.size() != n_results && shape->is(YamlNode::Kind::kList))
      reader_.error(*shape, "'" + entry_.name() + "' has " + std::to_string(n_results) + " results but " +
                                std::to_string(entry_.shapes.size()) + " shape rules; write one per result");
    if (!entry_.padded.empty()) read_largest_sizes(*shape);
  }

  void read_largest_sizes(const YamlNode& shape) {
    if (entry_.inplace || entry_.out_variant)
      reader_.error(shape,
                    "the size of a result depends on values, so it cannot be written into a tensor that is "
                    "given; remove 'variants'");
    for (size_t i = 0; i < entry_.padded.size() && i < entry_.shapes.size(); ++i)
      entry_.padded[i] = read_largest_size(reader_, entry_.shapes[i]);
    Text scalar = entry_.signature.text;
    scalar.value = "scalar()";
    entry_.shapes.push_back({scalar, parse_formula(scalar, reader_.diagnostics())});
  }

  void read_nondiff() {
    const YamlNode* nondiff = node_.find("nondiff");
    if (!nondiff) return;
    for (const Text& word : reader_.read_words(*nondiff, "nondiff")) {
      int result = entry_.signature.find_result(word.value);
      size_t number = entry_.signature.results.size();
      std::from_chars(word.value.data(), word.value.data() + word.value.size(), number);
      if (result < 0 && number < entry_.signature.results.size()) result = static_cast<int>(number);
      if (result < 0)
        reader_.diagnostics().error(word.location(), "'" + word.value + "' is not a result of '" + entry_.name() +
                                                         "'; give a result's name or number");
      else
        entry_.signature.results[static_cast<size_t>(result)].nondiff = true;
    }
  }

  void read_words() {
    if (const YamlNode* tags = node_.find("tags")) entry_.tags = reader_.read_words(*tags, "tags");
    for (const Text& tag : entry_.tags)
      if (tag.value.find_first_of(", \n\t") != std::string::npos)
        reader_.diagnostics().error(tag.location(), "tag '" + tag.value + "' is not a word; tags stand between commas");
    if (const YamlNode* aliases = node_.find("aliases")) entry_.aliases = reader_.read_words(*aliases, "aliases");
    for (const Text& alias : entry_.aliases)
      if (!is_identifier(alias.value))
        reader_.diagnostics().error(alias.location(),
                                    "alias '" + alias.value + "' is not a name; use letters, digits and _");
    if (const YamlNode* source = node_.find("source")) entry_.source = reader_.read_words(*source, "source");
    if (const YamlNode* errors = node_.find("errors")) entry_.errors = reader_.read_word_map(*errors, "errors");
    if (const YamlNode* except = node_.find("except")) entry_.except = reader_.read_word_map(*except, "except");
    for (const auto& [name, when] : entry_.errors)
      if (!one_of(name.value, error_names()))
        reader_.diagnostics().error(name.location(), "unknown error '" + name.value + "'" +
                                                         suggestion(name.value, error_names()) + "; errors are " +
                                                         listed(error_names()));
    for (const auto& [law, reason] : entry_.except) {
      if (!one_of(law.value, laws()))
        reader_.diagnostics().error(law.location(), "unknown law '" + law.value + "'" + suggestion(law.value, laws()) +
                                                        "; laws are " + listed(laws()));
      if (reason.empty())
        reader_.diagnostics().error(law.location(), "the exception from '" + law.value + "' has no reason; write one");
    }
    read_text("example", entry_.example, false);
    read_text("since", entry_.since, false);
    read_text("compare", entry_.compare, false);
    if (!entry_.compare.empty() && !one_of(entry_.compare.value, comparisons()))
      reader_.error(*node_.find("compare"), "unknown comparison '" + entry_.compare.value + "'" +
                                                suggestion(entry_.compare.value, comparisons()) + "; comparisons are " +
                                                listed(comparisons()));
    if (const YamlNode* tolerance = node_.find("tolerance")) {
      char* end = nullptr;
      entry_.tolerance = std::strtod(tolerance->text.value.c_str(), &end);
      if (!tolerance->is(YamlNode::Kind::kScalar) || *end != 0 || !(entry_.tolerance > 0))
        reader_.error(*tolerance, "'tolerance' is '" + tolerance->text.value + "'; write a number above 0");
    }
    read_revisions();
  }

  // `revisions: {alpha: 1}`: the revision of the signature that brought an argument.
  void read_revisions() {
    const YamlNode* revisions = node_.find("revisions");
    if (!revisions || !reader_.expect_map(*revisions, "revisions")) return;
    for (const auto& [key, value] : revisions->entries) {
      const int arg = entry_.signature.find_arg(key->text.value);
      int64_t revision = 0;
      if (!reader_.read_int(*value, "revisions", revision)) continue;
      if (arg < 0 || revision < 1 || revision > 1'000'000) {
        reader_.error(*key, "'revisions' maps an argument to the revision that brought it, 1 or more");
        continue;
      }
      Arg& brought = entry_.signature.args[static_cast<size_t>(arg)];
      brought.since = static_cast<uint32_t>(revision);
      if (!brought.has(BP_ARG_HAS_DEFAULT))
        reader_.error(*key, "argument '" + brought.name + "' came later and has no default; give it the old behaviour");
      entry_.revision = std::max(entry_.revision, brought.since);
    }
  }

  ValueReader& reader_;
  const YamlNode& node_;
  Entry& entry_;
};

}  // namespace

bool ValueReader::expect_map(const YamlNode& node, const std::string& what) {
  if (node.is(YamlNode::Kind::kMap)) return true;
  error(node, what + " must be a map of keys and values");
  return false;
}

bool ValueReader::expect_scalar(const YamlNode& node, const std::string& what) {
  if (node.is(YamlNode::Kind::kScalar)) return true;
  error(node, "'" + what + "' must be one text" +
                  (node.is(YamlNode::Kind::kNull) ? "; it is empty" : "; quote it if it holds [ ], { } or ': '"));
  return false;
}

bool ValueReader::read_bool(const YamlNode& node, const std::string& what) {
  if (node.is(YamlNode::Kind::kScalar) && !node.quoted && (node.text.value == "true" || node.text.value == "false"))
    return node.text.value == "true";
  error(node, "'" + what + "' must be true or false");
  return false;
}

bool ValueReader::read_int(const YamlNode& node, const std::string& what, int64_t& out) {
  const std::string& text = node.text.value;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  if (node.is(YamlNode::Kind::kScalar) && parsed.ec == std::errc() && parsed.ptr == text.data() + text.size())
    return true;
  error(node, "'" + what + "' must be an integer");
  return false;
}

std::vector<Text> ValueReader::read_words(const YamlNode& node, const std::string& what) {
  std::vector<Text> words;
  if (node.is(YamlNode::Kind::kScalar))
    words.push_back(node.text);
  else if (!node.is(YamlNode::Kind::kList))
    error(node, "'" + what + "' must be a list of words");
  for (const YamlNode* item : node.items)
    if (expect_scalar(*item, what)) words.push_back(item->text);
  return words;
}

WordMap ValueReader::read_word_map(const YamlNode& node, const std::string& what) {
  WordMap map;
  if (!expect_map(node, "'" + what + "'")) return map;
  for (const auto& [key, value] : node.entries)
    if (expect_scalar(*value, what)) map.emplace_back(key->text, value->text);
  return map;
}

void read_entry(ValueReader& reader, const YamlNode& node, Entry& entry) { EntryReader(reader, node, entry).read(); }

}  // namespace backplane::codegen
