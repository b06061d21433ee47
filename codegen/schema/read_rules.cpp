// `partial`, `vjp`, `jvp`, `batch`, `decompose` and `put`; see docs/reference/ops-yaml.md.
#include <algorithm>

#include "schema/reader.hpp"

namespace backplane::codegen {
namespace {

class RuleReader {
 public:
  RuleReader(ValueReader& reader, const YamlNode& node, Entry& entry) : reader_(reader), node_(node), entry_(entry) {}

  void read() {
    if (const YamlNode* value = node_.find("partial")) read_targets(*value, "partial", entry_.partial);
    if (const YamlNode* value = node_.find("vjp")) {
      entry_.states_vjp = true;
      read_derivative(*value, "vjp", entry_.vjp);
    }
    if (const YamlNode* value = node_.find("jvp")) {
      entry_.states_jvp = true;
      read_derivative(*value, "jvp", entry_.jvp);
    }
    if (const YamlNode* value = node_.find("batch")) entry_.batch = read_batch(*value);
    if (const YamlNode* value = node_.find("decompose")) entry_.decompose = read_formula(*value);
    if (const YamlNode* value = node_.find("put")) {
      Rule refusal;
      entry_.put = read_refusal(*value, refusal) ? std::move(refusal) : read_formula(*value);
    }
  }

 private:
  Rule read_formula(const YamlNode& value) {
    Rule rule;
    rule.where = value.location();
    rule.kind = Rule::Kind::kDamaged;
    if (!reader_.expect_scalar(value, "a formula")) return rule;
    rule.text = value.text;
    rule.expr = parse_formula(rule.text, reader_.diagnostics());
    if (rule.expr) rule.kind = Rule::Kind::kFormula;
    return rule;
  }

  std::vector<uint32_t> tensor_args() const {
    std::vector<uint32_t> all;
    for (size_t i = 0; i < entry_.signature.args.size(); ++i)
      if (entry_.signature.args[i].is_tensor()) all.push_back(static_cast<uint32_t>(i));
    return all;
  }

  // `{none: REASON}`
  bool read_refusal(const YamlNode& value, Rule& rule) {
    if (!value.is(YamlNode::Kind::kMap) || value.entries.empty() || value.entries[0].first->text.value != "none")
      return false;
    if (value.entries.size() != 1)
      reader_.error(*value.entries[1].first, "'none' stands alone; quote a reason that holds a comma");
    const YamlNode& reason = *value.entries[0].second;
    rule.kind = Rule::Kind::kRefused;
    rule.where = value.location();
    if (!reason.is(YamlNode::Kind::kScalar) || reason.text.empty())
      reader_.error(value, "the refusal has no reason; write {none: why}");
    else
      rule.text = reason.text;
    return true;
  }

  std::optional<Rule> read_batch(const YamlNode& value) {
    Rule rule;
    rule.where = value.location();
    if (read_refusal(value, rule)) return rule;
    if (value.is(YamlNode::Kind::kScalar) && value.text.value == "loop") {
      rule.kind = Rule::Kind::kLoop;
      return rule;
    }
    return read_formula(value);
  }

  void read_derivative(const YamlNode& value, const char* key, std::vector<Rule>& out) {
    Rule rule;
    rule.where = value.location();
    rule.targets = tensor_args();
    if (read_refusal(value, rule)) {
      out.push_back(std::move(rule));
    } else if (value.is(YamlNode::Kind::kMap)) {
      read_targets(value, key, out);
    } else if (is_like_vjp(value, key)) {
      read_like_vjp(value, rule.targets, out);
    } else if (value.is(YamlNode::Kind::kScalar) && keyword(value, key, rule)) {
      rule.text = value.text;
      out.push_back(std::move(rule));
    } else {
      const std::string words =
          key == std::string_view("jvp") ? "linear, like vjp, zero, decompose" : "zero, decompose";
      reader_.error(
          value, std::string("'") + key + "' must be " + words + ", {none: REASON} or a map from argument to formula");
      rule.kind = Rule::Kind::kDamaged;
      out.push_back(std::move(rule));
    }
  }

  static bool is_like_vjp(const YamlNode& value, std::string_view key) {
    return key == "jvp" && value.is(YamlNode::Kind::kScalar) && value.text.value == "like vjp";
  }

  // The vjp's formulas with the tangent in the cotangent's place, for `targets`.
  void read_like_vjp(const YamlNode& value, const std::vector<uint32_t>& targets, std::vector<Rule>& out) {
    const auto refuse = [&](const char* message) {
      reader_.error(value, message);
      Rule damaged;
      damaged.kind = Rule::Kind::kDamaged;
      damaged.targets = targets;
      out.push_back(std::move(damaged));
    };
    if (entry_.signature.results.size() != 1)
      return refuse("'like vjp' is for ops with one result; write the addends of each");
    const size_t before = out.size();
    for (const Rule& vjp : entry_.vjp) {
      Rule rule;
      rule.kind = vjp.kind;
      rule.where = value.location();
      rule.text = vjp.text;
      for (const uint32_t target : vjp.targets)
        if (std::count(targets.begin(), targets.end(), target)) rule.targets.push_back(target);
      if (rule.targets.empty()) continue;
      if (vjp.kind == Rule::Kind::kFormula && vjp.targets.size() > 1) {
        reader_.error(value, "'like vjp' takes the formula of one argument, and this one gives several; write it out");
        rule.kind = Rule::Kind::kDamaged;
      } else if (vjp.expr) {
        rule.text.value = with_tangent(vjp.text);
        if (rule.text.value == vjp.text.value && entry_.signature.find_arg("t") >= 0)
          refuse("'like vjp' beside an argument 't' needs the cotangent written out in 'vjp': cotangent");
        rule.expr = parse_formula(rule.text, reader_.diagnostics());
      }
      out.push_back(std::move(rule));
    }
    if (out.size() == before) refuse("'like vjp' finds no rule in 'vjp'; write the formula");
  }

  // Replaces a word by another of equal length, so that positions in the text still match the file.
  std::string with_tangent(const Text& vjp) {
    std::string text = vjp.value;
    const auto is_free = [&](const char* word) { return entry_.signature.find_arg(word) < 0; };
    for (const Token& token : lex(vjp, reader_.diagnostics())) {
      if (token.is_word("g") && is_free("g") && is_free("t")) text[token.offset] = 't';
      if (token.is_word("cotangent") && is_free("cotangent") && is_free("tangent"))
        text.replace(token.offset, std::string_view("cotangent").size(), "  tangent");
    }
    return text;
  }

  static bool keyword(const YamlNode& value, std::string_view key, Rule& rule) {
    const std::string& word = value.text.value;
    if (word == "zero")
      rule.kind = Rule::Kind::kZero;
    else if (word == "decompose")
      rule.kind = Rule::Kind::kDecompose;
    else if (word == "linear" && key == "jvp")
      rule.kind = Rule::Kind::kLinear;
    else
      return false;
    return true;
  }

  // "x" or "(x, w, b)". False where that cannot be read: the rule may then be anyone's, so nobody's is missed.
  bool read_names(const YamlNode& key, std::vector<uint32_t>& targets) {
    TokenStream tokens(key.text, reader_.diagnostics());
    const bool group = tokens.accept("(");
    do {
      const Token name = tokens.take();
      const int arg = name.kind == Token::Kind::kName ? entry_.signature.find_arg(name.text) : -1;
      if (arg < 0) {
        std::vector<std::string_view> names;
        for (const Arg& a : entry_.signature.args) names.push_back(a.name);
        tokens.error(name, quoted(name) + " is not an argument of '" + entry_.name() + "'" +
                               suggestion(name.text, names) + "; arguments are " + listed(names));
      } else if (!entry_.signature.args[static_cast<size_t>(arg)].is_tensor()) {
        tokens.error(name,
                     "argument '" + std::string(name.text) + "' is not a Tensor and has no derivative; remove it");
      } else {
        targets.push_back(static_cast<uint32_t>(arg));
      }
    } while (group && tokens.accept(","));
    if (group) tokens.expect(")", "to close the group");
    if (!tokens.failed() && !tokens.at_end())
      tokens.error(tokens.peek(), "found " + quoted(tokens.peek()) + "; write one argument or \"(x, y)\"");
    if (tokens.failed()) targets = tensor_args();
    return !tokens.failed();
  }

  void read_targets(const YamlNode& map, const char* key, std::vector<Rule>& out) {
    if (!reader_.expect_map(map, std::string("'") + key + "'")) return;
    std::vector<bool> seen(entry_.signature.args.size(), false);
    for (const auto& [names, value] : map.entries) {
      Rule rule;
      rule.where = value->location();
      const bool readable = read_names(*names, rule.targets);
      for (const uint32_t target : readable ? rule.targets : std::vector<uint32_t>()) {
        if (seen[target])
          reader_.error(
              *names, "argument '" + entry_.signature.args[target].name + "' has two rules in '" + key + "'; keep one");
        seen[target] = true;
      }
      if (!readable) {
        rule.kind = Rule::Kind::kDamaged;
        out.push_back(std::move(rule));
      } else if (read_refusal(*value, rule)) {
        out.push_back(std::move(rule));
      } else if (is_like_vjp(*value, key)) {
        read_like_vjp(*value, rule.targets, out);
      } else if (value->is(YamlNode::Kind::kList)) {
        read_per_result(*value, key, std::move(rule), out);
      } else if (value->is(YamlNode::Kind::kScalar) && value->text.value == "zero" &&
                 key != std::string_view("partial")) {
        rule.kind = Rule::Kind::kZero;
        out.push_back(std::move(rule));
      } else {
        Rule formula = read_formula(*value);
        formula.targets = std::move(rule.targets);
        out.push_back(std::move(formula));
      }
    }
  }

  void read_per_result(const YamlNode& list, const char* key, Rule rule, std::vector<Rule>& out) {
    if (key != std::string_view("jvp") || list.items.size() != entry_.signature.results.size()) {
      reader_.error(list, key != std::string_view("jvp")
                              ? std::string("a list stands only in 'jvp'; quote a formula that begins with [")
                              : "'jvp' lists " + std::to_string(list.items.size()) + " addends for " +
                                    std::to_string(entry_.signature.results.size()) + " results; write one per result");
      rule.kind = Rule::Kind::kDamaged;
      out.push_back(std::move(rule));
      return;
    }
    for (const YamlNode* item : list.items) {
      Rule formula = read_formula(*item);
      if (!formula.expr) rule.kind = Rule::Kind::kDamaged;
      rule.per_result.emplace_back(formula.text, std::move(formula.expr));
    }
    out.push_back(std::move(rule));
  }

  ValueReader& reader_;
  const YamlNode& node_;
  Entry& entry_;
};

}  // namespace

void read_rules(ValueReader& reader, const YamlNode& node, Entry& entry) { RuleReader(reader, node, entry).read(); }

}  // namespace backplane::codegen
