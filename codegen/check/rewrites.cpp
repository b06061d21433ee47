// See rewrites.hpp.
#include "check/rewrites.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

constexpr size_t kMostNames = 8, kMostInputs = 32;

struct Word {
  std::string_view name;
  size_t arguments;
};
// For arguments that are not tensors, in `to`.
constexpr Word kFunctions[] = {{"composed", 2}, {"reciprocal", 1}};
constexpr Word kConditions[] = {{"integer", 1},    {"floating", 1}, {"real", 1},     {"signed", 1},
                                {"same_dtype", 2}, {"exact", 2},    {"in_order", 1}, {"power_of_two", 1}};

template <size_t N>
const Word* find_word(const Word (&words)[N], std::string_view name) {
  const auto found = std::find_if(words, words + N, [&](const Word& word) { return word.name == name; });
  return found == words + N ? nullptr : found;
}

template <size_t N>
std::vector<std::string_view> names_of(const Word (&words)[N]) {
  std::vector<std::string_view> names;
  for (const Word& word : words) names.push_back(word.name);
  return names;
}

class RewriteCompiler {
 public:
  RewriteCompiler(const Registry& registry, const std::string& ns, Diagnostics& diagnostics)
      : registry_(registry), ns_(ns), diagnostics_(diagnostics) {}

  CompiledRewrite compile(const Rewrite& stated) {
    result_.stated = &stated;
    result_.file = stated.where.file;
    text_ = &stated.from;
    part_ = Part::kFrom;
    result_.from = node(*stated.from_expr);
    if (result_.nodes[result_.from].kind != PatternNode::Kind::kCall)
      error(*stated.from_expr, "a rewrite begins from a call of an op, as in abs(abs(x))");
    text_ = &stated.to;
    part_ = Part::kTo;
    result_.to = node(*stated.to_expr);
    const PatternNode& to = result_.nodes[result_.to];
    if (to.kind != PatternNode::Kind::kCall && to.kind != PatternNode::Kind::kName)
      error(*stated.to_expr, "a rewrite leads to a name of its 'from', or to one call");
    for (size_t i = 0; i < stated.when.size(); ++i) {
      text_ = &stated.when[i];
      part_ = Part::kWhen;
      if (stated.when_exprs[i]) result_.when.push_back(condition(*stated.when_exprs[i]));
    }
    return std::move(result_);
  }

 private:
  enum class Part : uint8_t { kFrom, kTo, kWhen };

  void error(const Expr& at, std::string message) {
    diagnostics_.error(text_->location(at.offset), std::move(message));
  }
  uint32_t add(PatternNode node) {
    result_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(result_.nodes.size() - 1);
  }

  uint32_t node(const Expr& expr) {
    using Kind = Expr::Kind;
    PatternNode made;
    switch (expr.kind) {
      case Kind::kName:
        if (const int dtype = find_dtype(expr.name); dtype >= 0) {
          made.kind = PatternNode::Kind::kDtype;
          made.index = static_cast<uint32_t>(dtype);
          return add(made);
        }
        return name(expr);
      case Kind::kInt:
      case Kind::kFloat:
        made.kind = PatternNode::Kind::kNumber;
        made.number = expr.kind == Kind::kInt ? static_cast<double>(expr.integer) : expr.number;
        return add(made);
      case Kind::kUnary:
        if (expr.name == "neg" && (expr.children[0]->kind == Kind::kInt || expr.children[0]->kind == Kind::kFloat)) {
          const uint32_t number = node(*expr.children[0]);
          result_.nodes[number].number = -result_.nodes[number].number;
          return number;
        }
        [[fallthrough]];
      case Kind::kBinary:
        if (const Entry* op = registry_.find_operator(expr.symbol, expr.children.size(), ns_)) return call(expr, *op);
        break;
      case Kind::kCall:
        return part_ == Part::kTo && find_word(kFunctions, expr.name)
                   ? function(expr, *find_word(kFunctions, expr.name))
                   : call(expr);
      default:
        break;
    }
    error(expr, "a rewrite is made of calls and operators of ops, names, numbers and dtypes alone");
    return add(made);
  }

  uint32_t name(const Expr& expr) {
    PatternNode made;
    const auto known = std::find(result_.names.begin(), result_.names.end(), expr.name);
    made.index = static_cast<uint32_t>(known - result_.names.begin());
    if (known == result_.names.end()) {
      if (part_ != Part::kFrom)
        error(expr, "'" + expr.name + "' does not stand in 'from'; a rewrite uses what it has found there");
      else if (result_.names.size() == kMostNames)
        error(expr, "a rewrite has at most " + std::to_string(kMostNames) + " names");
      result_.names.push_back(expr.name);
    }
    return add(made);
  }

  std::vector<uint32_t> words_inputs(const Expr& expr, size_t expected) {
    std::vector<uint32_t> inputs;
    for (const ExprPtr& child : expr.children) inputs.push_back(node(*child));
    if (inputs.size() != expected || !expr.keywords.empty())
      error(expr, "'" + expr.name + "' takes " + std::to_string(expected) + " names of 'from'");
    for (const uint32_t input : inputs)
      if (result_.nodes[input].kind != PatternNode::Kind::kName) error(expr, "'" + expr.name + "' takes names alone");
    return inputs;
  }

  uint32_t function(const Expr& expr, const Word& word) {
    PatternNode made;
    made.kind = PatternNode::Kind::kFunction;
    made.op = word.name;
    made.inputs = words_inputs(expr, word.arguments);
    return add(std::move(made));
  }

  uint32_t condition(const Expr& expr) {
    const Word* word = expr.kind == Expr::Kind::kCall ? find_word(kConditions, expr.name) : nullptr;
    if (!word) {
      const auto names = names_of(kConditions);
      error(expr, "found '" + text_->value + "'; a condition is one of " + listed(names) + " with names of 'from'" +
                      suggestion(expr.name, names));
      return 0;
    }
    return function(expr, *word);
  }

  uint32_t call(const Expr& expr) {
    if (const Entry* op = registry_.find(expr.name, ns_)) return call(expr, *op);
    error(expr, "unknown op '" + expr.name + "'" + suggestion(expr.name, registry_.names_for(ns_)));
    PatternNode made;
    made.kind = PatternNode::Kind::kCall;
    return add(made);
  }

  // Written by name or by operator.
  uint32_t call(const Expr& expr, const Entry& op) {
    PatternNode made;
    made.kind = PatternNode::Kind::kCall;
    const std::string& name = op.name();
    const std::vector<Arg>& args = op.signature.args;
    if (op.signature.results.size() != 1 || op.signature.results[0].is_list || op.random || op.is_higher_order())
      error(expr, "'" + name + "' is not an op of one result that follows from its arguments; rules are of such ops");
    made.op = op.full_name;
    made.inputs.assign(std::min(args.size(), kMostInputs), PatternNode::kDefault);
    const auto set = [&](size_t position, const Expr& value) {
      if (position >= made.inputs.size() || made.inputs[position] != PatternNode::kDefault)
        return error(value, "'" + name + "' has no such argument, or has it already");
      const uint32_t input = node(value);
      made.inputs[position] = input;
    };
    for (size_t i = 0; i < expr.children.size(); ++i) set(i, *expr.children[i]);
    for (const Keyword& keyword : expr.keywords) {
      const int position = op.signature.find_arg(keyword.name);
      set(position < 0 ? args.size() : static_cast<size_t>(position), *keyword.value);
    }
    for (size_t i = 0; i < args.size(); ++i)
      if (made.inputs[i] == PatternNode::kDefault && !args[i].has(BP_ARG_HAS_DEFAULT))
        error(expr, "argument '" + args[i].name + "' of '" + name + "' is missing");
    if (part_ == Part::kTo)
      for (const uint32_t input : made.inputs)
        if (input != PatternNode::kDefault && result_.nodes[input].kind == PatternNode::Kind::kCall)
          error(expr, "a rewrite leads to a name of its 'from', or to one call");
    return add(std::move(made));
  }

  const Registry& registry_;
  const std::string& ns_;
  Diagnostics& diagnostics_;
  CompiledRewrite result_;
  const Text* text_ = nullptr;
  Part part_ = Part::kFrom;
};

size_t calls(const CompiledRewrite& rule, uint32_t root) {
  const PatternNode& node = rule.nodes[root];
  size_t count = node.kind == PatternNode::Kind::kCall;
  for (const uint32_t input : node.inputs)
    if (input != PatternNode::kDefault) count += calls(rule, input);
  return count;
}

// Rules that leave as many calls lead from op to op; none may lead back.
void check_end(const std::vector<CompiledRewrite>& rules, Diagnostics& diagnostics) {
  std::map<std::string, std::set<std::string>> next;
  for (const CompiledRewrite& rule : rules) {
    const size_t before = calls(rule, rule.from), after = calls(rule, rule.to);
    if (after > before)
      diagnostics.error(rule.stated->where,
                        "this rewrite leaves more calls than it finds; rules would not come to an end");
    if (after != before) continue;
    const std::string &from = rule.nodes[rule.from].op, &to = rule.nodes[rule.to].op;
    std::set<std::string> reached = {to};
    for (std::vector<std::string> open = {to}; !open.empty();) {
      const std::string op = open.back();
      open.pop_back();
      for (const std::string& further : next[op])
        if (reached.insert(further).second) open.push_back(further);
    }
    if (reached.count(from))
      diagnostics.error(rule.stated->where, "this rewrite leaves as many calls as it finds and leads back to '" + from +
                                                "'; rules would not come to an end");
    next[from].insert(to);
  }
}

}  // namespace

std::vector<CompiledRewrite> compile_rewrites(const std::vector<std::unique_ptr<RegistryFile>>& files,
                                              const Registry& registry, Diagnostics& diagnostics) {
  std::vector<CompiledRewrite> rules;
  for (const auto& file : files) {
    if (file->imported) continue;
    for (const Rewrite& rewrite : file->rewrites) {
      if (file->ns != "bp")
        diagnostics.error(rewrite.where, "rewrites are read from backplane's own registry alone; remove them here");
      if (rewrite.from_expr && rewrite.to_expr)
        rules.push_back(RewriteCompiler(registry, file->ns, diagnostics).compile(rewrite));
    }
  }
  if (diagnostics.empty()) check_end(rules, diagnostics);
  return rules;
}

}  // namespace backplane::codegen
