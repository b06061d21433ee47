// The texts about one op that records, help and pages share; see emit.hpp. Plain text: names stand without marks.
#include "emit/emit.hpp"

#include <algorithm>
#include <bit>

#include "check/names.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// The parameters of a shape word as they are written: "broadcast(x, y)" -> {"x", "y"}.
std::vector<std::string> parameters_of(const std::string& call) {
  std::vector<std::string> words(1);
  for (const char c : call.substr(call.find('(') + 1)) {
    if (c == ',') words.emplace_back();
    if (c != ',' && c != ' ' && c != ')') words.back() += c;
  }
  return words;
}

std::string kind_text(uint16_t kind, uint32_t param) {
  switch (kind) {
    case BP_RESULT_DTYPE_FIXED:
      return std::string(kDtypeNames[param]);
    case BP_RESULT_DTYPE_REAL:
      return "the real dtype of the promoted dtype";
    case BP_RESULT_DTYPE_COMPLEX:
      return "the complex dtype of the promoted dtype";
    case BP_RESULT_DTYPE_ACCUMULATE:
      return "int64 or uint64 of integers, else the promoted dtype";
    default:
      return "the promoted dtype";
  }
}

std::string arguments_text(const Entry& entry) {
  std::string text;
  for (const Arg& arg : entry.signature.args) {
    std::string meaning = argument_doc(entry, arg);
    if (!arg.choices.empty()) meaning += (meaning.empty() ? "" : " ") + listed_choices(arg.choices) + ".";
    if (!meaning.empty()) text += "\n" + arg.name + ": " + meaning;
  }
  return text;
}

std::string results_text(const Entry& entry) {
  std::string text = entry.signature.results.size() > 1 ? "\n\nResults:" : "\n\nResult:";
  for (size_t i = 0; i < entry.signature.results.size(); ++i)
    text += "\n    " + entry.signature.results[i].name + ": " + result_shape_text(entry, i) +
            "; dtype: " + result_dtype_text(entry, i) + ".";
  if (entry.dtypes.flags & BP_DTYPE_TO_FLOATING) text += "\n    Integers and bools compute in the default float.";
  if (entry.view) text += "\n    A view: it shares the memory of " + entry.signature.args[entry.alias].name + ".";
  if (entry.maybe_view)
    text += "\n    A view of " + entry.signature.args[entry.alias].name + " where strides allow, else a copy.";
  return text;
}

std::string gradient_text(const CompiledOp& op) {
  std::string text;
  for (size_t i = 0; i < op.entry->signature.args.size(); ++i) {
    const std::string rule = derivative_text(op, i);
    if (!rule.empty()) text += "\n    " + op.entry->signature.args[i].name + ": " + rule + ".";
  }
  return "\n\nGradient:" + (text.empty() ? "\n    None: no argument is differentiable." : text);
}

std::string example_text(const std::string& example) {
  std::string text = "\n\nExample:\n    ";
  for (const char c : example) text += c == '\n' ? std::string("\n    ") : std::string(1, c);
  return text.substr(0, text.find_last_not_of(" \n") + 1);
}

}  // namespace

std::string result_shape_text(const Entry& entry, size_t result) {
  std::string rule = whole_text(entry, entry.shapes[result].text, entry.shapes[result].expr.get());
  std::replace(rule.begin(), rule.end(), '\n', ' ');
  const std::string word = rule.substr(0, rule.find('('));
  const std::vector<std::string> names = parameters_of(rule);
  if (rule == "dynamic") return "the shape depends on values";
  if (!find_shape_word(word) || rule.find(')') != rule.size() - 1) return "shape: " + rule;
  if (word == "same" || (word == "broadcast" && names.size() == 1)) return "the shape of " + names[0];
  if (word == "broadcast") return "the broadcast shape of " + joined(names, ", ");
  if (word == "reduce")
    return "the shape of " + names[0] + " without its reduced axes, which have size 1 with " + names.back() + "=True";
  if (word == "arg") return "shape: " + names[0];
  return "shape: " + rule;
}

std::string result_dtype_text(const Entry& entry, size_t result) {
  const bp_result_dtype& rule = entry.dtypes.results[result];
  const uint64_t promoting = entry.dtypes.promote;
  const bool computes_in_one = rule.kind == BP_RESULT_DTYPE_COMPUTE && std::popcount(promoting) == 1 &&
                               !(entry.dtypes.flags & BP_DTYPE_TO_FLOATING);
  if (computes_in_one)
    return "the dtype of " + entry.signature.args[static_cast<size_t>(std::countr_zero(promoting))].name;
  if (rule.kind == BP_RESULT_DTYPE_OF_ARG) return "the dtype of " + entry.signature.args[rule.param].name;
  if (rule.kind != BP_RESULT_DTYPE_FROM_ARG) return kind_text(rule.kind, rule.param);
  const Arg& arg = entry.signature.args[rule.param];
  return "the argument " + arg.name +
         (arg.has(BP_ARG_OPTIONAL) ? "; if absent, " + kind_text(rule.fallback, rule.fallback_param) : "");
}

std::string derivative_text(const CompiledOp& op, size_t arg) {
  const Entry& entry = *op.entry;
  if (!is_differentiable_arg(entry, arg)) return "";
  if (entry.composite) return "through the decomposition";
  if (entry.is_higher_order()) return "by the rules of the function";
  const CompiledFormula* formula = op.find(BP_RULE_VJP, static_cast<uint32_t>(arg));
  if (!formula) return op.find(BP_RULE_DECOMPOSE) ? "through the decomposition" : "zero, the result is a constant";
  if (formula->flags & BP_FORMULA_ZERO) return "zero";
  if (formula->flags & BP_FORMULA_REFUSED) return "refused: " + formula->text;
  const CompiledFormula* forward = op.find(BP_RULE_JVP, static_cast<uint32_t>(arg));
  const bool refused = forward && (forward->flags & BP_FORMULA_REFUSED);
  return refused ? "in reverse mode; forward mode is refused: " + forward->text : "in forward and reverse mode";
}

std::string batching_text(const CompiledOp& op) {
  const CompiledFormula* batch = op.find(BP_RULE_BATCH);
  if (op.entry->is_higher_order()) return "by the rules of the function";
  if (!batch && (op.flags & BP_OP_CREATION))
    return op.flags & BP_OP_RANDOM ? "by the argument randomness of vmap" : "not needed: one result for all rows";
  if (!batch || ((batch->flags & BP_FORMULA_LOOP) && op.find(BP_RULE_DECOMPOSE))) return "through the decomposition";
  if (batch->flags & BP_FORMULA_LOOP) return "by a loop over the batch, which is counted";
  if (batch->flags & BP_FORMULA_REFUSED) return "refused: " + batch->text;
  return batch->roots.empty() ? "derived from the shape rule" : "by the formula of the entry";
}

std::string docstring(const CompiledOp& op) {
  const Entry& entry = *op.entry;
  std::string text = entry.doc.value;
  if (const std::string arguments = arguments_text(entry); !arguments.empty()) text += "\n" + arguments;
  text += results_text(entry) + gradient_text(op) + "\n\nBatching: " + batching_text(op) + ".";
  if (!entry.errors.empty()) text += "\n\nErrors:";
  for (const auto& [name, when] : entry.errors) text += "\n    " + name.value + ": " + when.value + ".";
  return entry.example.empty() ? text : text + example_text(entry.example.value);
}

}  // namespace backplane::codegen
