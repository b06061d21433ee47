// yaml-cpp's events to a bounded tree; see yaml_tree.hpp.
#include "schema/yaml_tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

namespace backplane::codegen {
namespace {

struct Refusal {
  size_t offset;
  std::string message;
};

int parenthesis_balance(std::string_view text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '(') - std::count(text.begin(), text.end(), ')'));
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const Source& source, YamlTree& tree, Diagnostics& diagnostics)
      : source_(source), tree_(tree), diagnostics_(diagnostics) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(leaf(mark, YamlNode::Kind::kNull), 1, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode* node = leaf(mark, YamlNode::Kind::kScalar);
    node->quoted = tag == "!";
    node->text.value = value;
    // By an escape in quotes, which the check of the file's bytes cannot see.
    if (first_hidden(value) != std::string::npos || value.find('\r') != std::string::npos)
      throw Refusal{node->text.begin, "this text has a character that does not show, by an escape; remove it"};
    add(node, 1, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) throw Refusal{position(mark), "this alias contains itself; write the value out"};
    add(known->second.first, known->second.second, 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, YamlNode::Kind::kList, anchor, style);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, YamlNode::Kind::kMap, anchor, style);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlNode* node;
    YAML::anchor_t anchor;
    bool flow;
    uint64_t size;
    const YamlNode* key;
  };

  size_t position(const YAML::Mark& mark) const {
    return source_.offset(static_cast<size_t>(std::max(mark.line, 0)), static_cast<size_t>(std::max(mark.column, 0)));
  }

  YamlNode* leaf(const YAML::Mark& mark, YamlNode::Kind kind) {
    YamlNode& node = tree_.nodes.emplace_back();
    node.kind = kind;
    node.text.source = &source_;
    node.text.begin = position(mark);
    return &node;
  }

  void open(const YAML::Mark& mark, YamlNode::Kind kind, YAML::anchor_t anchor, YAML::EmitterStyle::value style) {
    if (stack_.size() >= kMaxDepth)
      throw Refusal{position(mark),
                    "nested deeper than " + std::to_string(kMaxDepth) + " levels; a registry file needs six"};
    stack_.push_back({leaf(mark, kind), anchor, style == YAML::EmitterStyle::Flow, 1, nullptr});
  }

  void close() {
    const Open done = stack_.back();
    stack_.pop_back();
    if (done.flow) join_split_calls(*done.node);
    if (done.node->is(YamlNode::Kind::kMap)) refuse_duplicates(*done.node);
    add(done.node, done.size, done.anchor);
  }

  void add(YamlNode* node, uint64_t size, YAML::anchor_t anchor) {
    if (anchor) anchors_[anchor] = {node, size};
    if (stack_.empty()) {
      tree_.root = node;
      return;
    }
    Open& parent = stack_.back();
    parent.size += size;
    if (parent.size > kMaxExpandedNodes)
      throw Refusal{node->text.begin, "aliases expand to more than " + std::to_string(kMaxExpandedNodes) +
                                          " nodes; write the values out"};
    if (parent.node->is(YamlNode::Kind::kList)) {
      parent.node->items.push_back(node);
    } else if (!parent.key) {
      parent.key = node;
    } else {
      parent.node->entries.emplace_back(parent.key, node);
      parent.key = nullptr;
    }
  }

  // Inside { } and [ ] YAML ends a plain scalar at a comma, which splits `{x: mul(g, y)}` into three words. Where
  // parentheses are left open the pieces are one formula.
  void join_split_calls(YamlNode& node) {
    if (node.is(YamlNode::Kind::kList)) {
      join(
          node.items, [](const YamlNode* item) { return item; }, [](const YamlNode* item) { return item; },
          [](const YamlNode*& item, const YamlNode* joined) { item = joined; });
      return;
    }
    using Entry = std::pair<const YamlNode*, const YamlNode*>;
    join(
        node.entries, [](const Entry& e) { return e.second; },
        [](const Entry& e) { return e.second->is(YamlNode::Kind::kNull) ? e.first : nullptr; },
        [](Entry& e, const YamlNode* joined) { e.second = joined; });
  }

  template <class Items, class Head, class Tail, class Replace>
  void join(Items& items, Head head, Tail tail, Replace replace) {
    Items joined;
    for (size_t i = 0; i < items.size(); ++i) {
      joined.push_back(items[i]);
      const YamlNode* first = head(items[i]);
      if (!first->is(YamlNode::Kind::kScalar) || first->quoted) continue;
      int balance = parenthesis_balance(first->text.value);
      size_t last = i;
      while (balance > 0 && last + 1 < items.size()) {
        const YamlNode* piece = tail(items[last + 1]);
        if (!piece || !piece->is(YamlNode::Kind::kScalar) || piece->quoted) break;
        balance += parenthesis_balance(piece->text.value);
        ++last;
      }
      if (balance != 0 || last == i) continue;
      const YamlNode* end = tail(items[last]);
      YamlNode& whole = tree_.nodes.emplace_back(*first);
      whole.text.value =
          source_.text().substr(first->text.begin, end->text.begin + end->text.value.size() - first->text.begin);
      replace(joined.back(), &whole);
      i = last;
    }
    items = std::move(joined);
  }

  void refuse_duplicates(const YamlNode& map) {
    for (size_t i = 0; i < map.entries.size(); ++i) {
      const YamlNode* key = map.entries[i].first;
      if (!key->is(YamlNode::Kind::kScalar)) {
        diagnostics_.error(key->location(), "a key must be a word; quote a formula that holds [ ], { } or ': '");
        continue;
      }
      for (size_t j = 0; j < i; ++j) {
        const YamlNode* earlier = map.entries[j].first;
        if (earlier->is(YamlNode::Kind::kScalar) && earlier->text.value == key->text.value)
          diagnostics_.error(key->location(), "key '" + key->text.value + "' stands twice; the first is on line " +
                                                  std::to_string(earlier->location().line));
      }
    }
  }

  const Source& source_;
  YamlTree& tree_;
  Diagnostics& diagnostics_;
  std::vector<Open> stack_;
  std::unordered_map<YAML::anchor_t, std::pair<YamlNode*, uint64_t>> anchors_;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name->text.value == key) return value;
  return nullptr;
}

std::unique_ptr<YamlTree> parse_yaml(const Source& source, Diagnostics& diagnostics) {
  if (source.text().size() > kMaxFileBytes) {
    diagnostics.error({source.path(), 1, 1}, "the file has " + std::to_string(source.text().size()) +
                                                 " bytes; at most " + std::to_string(kMaxFileBytes) + " are read");
    return nullptr;
  }
  auto tree = std::make_unique<YamlTree>();
  try {
    std::istringstream stream(source.text());
    YAML::Parser parser(stream);
    TreeBuilder builder(source, *tree, diagnostics);
    if (!parser.HandleNextDocument(builder) || !tree->root) {
      diagnostics.error({source.path(), 1, 1}, "the file is empty; it needs 'namespace' and 'ops'");
      return nullptr;
    }
    YamlTree rest;
    TreeBuilder other(source, rest, diagnostics);
    if (parser.HandleNextDocument(other)) {
      diagnostics.error(rest.root ? rest.root->location() : Location{source.path(), 1, 1},
                        "a second document begins here; a file holds one. Fix: remove the line '---' before it");
      return nullptr;
    }
  } catch (const Refusal& refusal) {
    diagnostics.error(source.location(refusal.offset), refusal.message);
    return nullptr;
  } catch (const YAML::Exception& e) {
    const size_t offset =
        e.mark.is_null() ? 0 : source.offset(static_cast<size_t>(e.mark.line), static_cast<size_t>(e.mark.column));
    const size_t begin = offset ? source.text().rfind('\n', offset - 1) + 1 : 0;
    const std::string line = source.text().substr(begin, source.text().find('\n', offset) - begin);
    const char* fix = "";
    if (line.find('{') != std::string::npos) fix = "; a formula inside { } that holds [ ], { } or ': ' needs quotes";
    if (line.starts_with('\t')) fix = "; YAML is indented by spaces, without tabs";
    diagnostics.error(source.location(offset), "not YAML: " + e.msg + fix);
    return nullptr;
  }
  return tree;
}

}  // namespace backplane::codegen
