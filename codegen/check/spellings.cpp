// See spellings.hpp.
#include "check/spellings.hpp"

#include <algorithm>

#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

// Does a parameter of a spelling serve as an argument of the op that it calls?
bool serves(const Arg& parameter, const Arg& argument) {
  constexpr std::pair<uint16_t, uint16_t> kConverted[] = {{BP_TYPE_AXIS, BP_TYPE_AXES},
                                                          {BP_TYPE_BOOL, BP_TYPE_SCALAR},
                                                          {BP_TYPE_SCALAR, BP_TYPE_TENSOR},
                                                          {BP_TYPE_SIZE, BP_TYPE_SHAPE}};
  if (parameter.has(BP_ARG_LIST) != argument.has(BP_ARG_LIST)) return false;
  const std::pair types(parameter.type, argument.type);
  return parameter.type == argument.type ||
         std::find(std::begin(kConverted), std::end(kConverted), types) != std::end(kConverted);
}

class SpellingCompiler {
 public:
  SpellingCompiler(const Registry& registry, const Entry& entry, const OpSpelling& stated, Diagnostics& diagnostics)
      : registry_(registry), stated_(stated), diagnostics_(diagnostics), used_(stated.signature->args.size(), false) {
    result_.entry = &entry;
    result_.stated = &stated;
  }

  CompiledSpelling compile() {
    if (stated_.call->kind != Expr::Kind::kCall)
      error(*stated_.call, "a spelling means a call; write one, as in max_with_indices(x, dim)");
    else
      node(*stated_.call, nullptr);
    for (size_t i = 0; i < used_.size(); ++i) check_parameter(stated_.signature->args[i], used_[i]);
    if (result_.nodes.size() > kMost || used_.size() > kMost)
      error(*stated_.call, "a spelling has at most 16 parameters and 16 values; write an entry and call it");
    return std::move(result_);
  }

 private:
  static constexpr size_t kMost = 16;  // Overload::kMost of python/bindings/ops/spellings.hpp

  void check_parameter(const Arg& parameter, bool used) {
    const bool is_none = parameter.type == 0;
    if (!used && !is_none && !failed_)
      error(*stated_.call, "the call does not use '" + parameter.name + "'; use or remove it");
    const Literal& value = parameter.default_value;
    if (value.kind == Literal::Kind::kFloats || (value.kind == Literal::Kind::kInts && value.ints.size() != 1))
      error(*stated_.call, "the default of '" + parameter.name + "' is a list; write a list of one int, or none");
  }

  void error(const Expr& at, const std::string& message) {
    failed_ = true;
    const Text& text = stated_.meaning;
    diagnostics_.error(text.location(at.offset), message);
  }

  uint32_t add(SpellingNode node) {
    result_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(result_.nodes.size() - 1);
  }

  // The number of the node that computes `expr` for an argument; nullptr: for the call itself.
  uint32_t node(const Expr& expr, const Arg* argument) {
    switch (expr.kind) {
      case Expr::Kind::kCall:
        return call(expr, registry_.find(expr.name, result_.entry->ns));
      case Expr::Kind::kUnary:
        if (const Expr& number = *expr.children[0]; expr.symbol == "-" && is_number(number))
          return negative_node(number);
        [[fallthrough]];
      case Expr::Kind::kBinary:
        return call(expr, registry_.find_operator(expr.symbol, expr.children.size(), result_.entry->ns));
      case Expr::Kind::kName:
        if (const int parameter = stated_.signature->find_arg(expr.name); parameter >= 0)
          return parameter_node(expr, static_cast<uint32_t>(parameter), *argument);
        [[fallthrough]];
      default:
        return literal_node(expr);
    }
  }

  uint32_t parameter_node(const Expr& expr, uint32_t parameter, const Arg& argument) {
    used_[parameter] = true;
    const Arg& given = stated_.signature->args[parameter];
    if (!serves(given, argument))
      error(expr, "parameter '" + given.name + "' does not fit argument '" + argument.name + "', a " +
                      std::string(type_name(argument.type)) + (argument.has(BP_ARG_LIST) ? "[]" : ""));
    SpellingNode made;
    made.parameter = parameter;
    return add(std::move(made));
  }

  static bool is_number(const Expr& expr) { return expr.kind == Expr::Kind::kInt || expr.kind == Expr::Kind::kFloat; }

  uint32_t negative_node(const Expr& number) {
    const uint32_t made = literal_node(number);
    Literal& value = result_.nodes[made].literal;
    value.integer = -value.integer;
    value.number = -value.number;
    return made;
  }

  uint32_t literal_node(const Expr& expr) {
    SpellingNode made;
    made.kind = SpellingNode::Kind::kLiteral;
    Literal& value = made.literal;
    value.integer = expr.integer;
    value.number = expr.number;
    value.text = expr.name;
    if (expr.kind == Expr::Kind::kInt) {
      value.kind = Literal::Kind::kInt;
    } else if (expr.kind == Expr::Kind::kFloat) {
      value.kind = Literal::Kind::kFloat;
    } else if (expr.kind == Expr::Kind::kString) {
      value.kind = Literal::Kind::kString;
    } else if (expr.kind == Expr::Kind::kName && (expr.name == "true" || expr.name == "false")) {
      value.kind = Literal::Kind::kBool;
      value.integer = expr.name == "true";
    } else if (expr.kind == Expr::Kind::kName && find_dtype(expr.name) >= 0) {
      value.kind = Literal::Kind::kDtype;
      value.integer = find_dtype(expr.name);
    } else {
      error(expr, "a spelling's call takes its parameters, numbers, texts, true, false, dtypes and calls of ops");
    }
    return add(std::move(made));
  }

  uint32_t call(const Expr& expr, const Entry* op) {
    if (!op) {
      error(expr, "no op '" + (expr.name.empty() ? std::string(expr.symbol) : expr.name) + "' is in the registry");
      return 0;
    }
    SpellingNode made;
    made.kind = SpellingNode::Kind::kCall;
    made.op = op;
    const std::vector<Arg>& args = op->signature.args;
    for (size_t i = 0; i < expr.children.size(); ++i) {
      if (i >= args.size() || args[i].has(BP_ARG_KEYWORD_ONLY)) {
        error(*expr.children[i], "'" + op->name() + "' takes fewer arguments by position");
        return 0;
      }
      made.inputs.emplace_back(static_cast<uint32_t>(i), node(*expr.children[i], &args[i]));
    }
    for (const Keyword& keyword : expr.keywords) {
      const int argument = op->signature.find_arg(keyword.name);
      if (argument < 0) {
        error(*keyword.value, "'" + op->name() + "' has no argument '" + keyword.name + "'");
        return 0;
      }
      made.inputs.emplace_back(static_cast<uint32_t>(argument),
                               node(*keyword.value, &args[static_cast<size_t>(argument)]));
    }
    for (size_t i = 0; i < args.size(); ++i) {
      const bool given =
          std::any_of(made.inputs.begin(), made.inputs.end(), [&](const auto& in) { return in.first == i; });
      if (!given && !args[i].has(BP_ARG_HAS_DEFAULT) && args[i].type != BP_TYPE_GENERATOR)
        error(expr, "'" + op->name() + "' is called without its argument '" + args[i].name + "'");
    }
    return add(std::move(made));
  }

  const Registry& registry_;
  const OpSpelling& stated_;
  Diagnostics& diagnostics_;
  std::vector<bool> used_;  // parameters
  bool failed_ = false;
  CompiledSpelling result_;
};

}  // namespace

std::vector<CompiledSpelling> compile_spellings(const std::vector<std::unique_ptr<RegistryFile>>& files,
                                                const Registry& registry, Diagnostics& diagnostics) {
  std::vector<CompiledSpelling> spellings;
  for (const auto& file : files) {
    for (const Entry& entry : file->entries) {
      if (file->imported || entry.damaged) continue;
      for (const OpSpelling& stated : entry.spellings) {
        if (entry.ns != "bp")
          diagnostics.error(stated.where, "'spellings' stand in Backplane's own registry; remove them here");
        else if (!stated.signature)
          spellings.push_back({&entry, &stated, {}});
        else if (stated.call)
          spellings.push_back(SpellingCompiler(registry, entry, stated, diagnostics).compile());
      }
    }
  }
  return spellings;
}

}  // namespace backplane::codegen
