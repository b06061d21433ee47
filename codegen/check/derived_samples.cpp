// Samples that the entry does not state: a rule that is wrong for numbers and words that no sample sets would pass its
// tests. Each is the first sample that computes something, with one argument changed. See op_compiler.hpp.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "check/op_compiler.hpp"

namespace backplane::codegen {
namespace {

bool has_elements(const Sample& sample) {
  bool tensors = false;
  for (const auto& [index, value] : sample.values)
    for (const auto& tensor : value.tensors) {
      if (!tensor) continue;
      tensors = true;
      if (std::find(tensor->shape.begin(), tensor->shape.end(), 0) == tensor->shape.end()) return true;
    }
  return !tensors;
}

const Literal* literal_of(const Sample& sample, uint32_t index, const Arg& arg) {
  for (const auto& [at, value] : sample.values)
    if (at == index) return value.kind == SampleValue::Kind::kLiteral ? &value.literal : nullptr;
  return arg.has(BP_ARG_HAS_DEFAULT) ? &arg.default_value : nullptr;
}

bool is_number(const Literal& literal) {
  return literal.kind == Literal::Kind::kInt || literal.kind == Literal::Kind::kFloat;
}
double number_of(const Literal& literal) {
  return literal.kind == Literal::Kind::kInt ? static_cast<double>(literal.integer) : literal.number;
}

Literal number(double value) {
  Literal literal;
  literal.kind = Literal::Kind::kFloat;
  literal.number = value;
  return literal;
}

// Of the sign that the entry's own number has: 0.75 for none and 0.
Literal other_number(const Literal* stated) {
  const double value = stated && is_number(*stated) ? number_of(*stated) : 0;
  return number(value != 0 && std::isfinite(value) ? value * 1.75 : 0.75);
}

Literal bool_literal(bool value) {
  Literal literal;
  literal.kind = Literal::Kind::kBool;
  literal.integer = value;
  return literal;
}

Literal word(const Text& text) {
  Literal literal;
  literal.kind = Literal::Kind::kString;
  literal.text = text.value;
  return literal;
}

// The same for the same literal, whether it was written or is a default.
std::string text_of(const Literal* literal) {
  if (!literal || literal->kind == Literal::Kind::kNone) return "none";
  if (is_number(*literal)) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, number_of(*literal)).ptr};
  }
  return literal->kind == Literal::Kind::kBool ? (literal->integer ? "true" : "false") : literal->text;
}

}  // namespace

void OpCompiler::derive_samples() {
  if (entry_.imported || entry_.is_higher_order()) return;
  std::vector<const Sample*> usual;
  for (const Sample& sample : entry_.samples)
    if (sample.error.empty()) usual.push_back(&sample);
  const auto base = std::find_if(usual.begin(), usual.end(), [](const Sample* s) { return has_elements(*s); });
  if (base == usual.end()) {
    if (!usual.empty())
      error(usual.front()->where, "no sample of '" + entry_.name() +
                                      "' has an element, so that nothing that the op computes is tried; add one as in "
                                      "[2, 3]");
    return;
  }
  for (uint32_t i = 0; i < entry_.signature.args.size(); ++i) {
    const Arg& arg = entry_.signature.args[i];
    const Literal* stated = literal_of(**base, i, arg);
    std::set<std::string> used;
    for (const Sample* sample : usual) used.insert(text_of(literal_of(*sample, i, arg)));
    if (const auto* range = entry_.fuzz_of(i)) {
      for (const double at : {0.1875, 0.8125}) derive(**base, i, number(range->low + at * (range->high - range->low)));
    } else if (arg.type == BP_TYPE_SCALAR && !arg.has(BP_ARG_LIST) && used.size() == 1) {
      const Literal other = other_number(stated);
      warn_unset(i, *used.begin());
      derive(**base, i, other);
    } else if (arg.type == BP_TYPE_BOOL && !arg.has(BP_ARG_LIST) && used.size() == 1) {
      const bool value = stated && stated->kind == Literal::Kind::kBool && stated->integer;
      warn_unset(i, *used.begin());
      derive(**base, i, bool_literal(!value));
    }
    for (const Text& choice : arg.choices) {
      if (used.count(choice.value)) continue;
      if (!entry_.made_of)
        diagnostics_.warning(entry_.where, "'" + entry_.name() + "': no sample uses " + arg.name + "='" + choice.value +
                                               "'; add one, because the op may refuse the derived one");
      derive(**base, i, word(choice));
    }
  }
}

void OpCompiler::warn_unset(uint32_t arg, const std::string& value) {
  if (entry_.made_of) return;  // said of its padded form
  const Arg& unset = entry_.signature.args[arg];
  const std::string fuzz =
      unset.type == BP_TYPE_SCALAR ? ", or state its range: fuzz: {" + unset.name + ": 'uniform(-3, 3)'}" : "";
  diagnostics_.warning(entry_.where, "'" + entry_.name() + "': no sample sets '" + unset.name +
                                         "' to another value than " + value + "; add one" + fuzz);
}

void OpCompiler::derive(const Sample& base, uint32_t arg, const Literal& literal) {
  Sample sample = base;
  sample.expected.clear();
  SampleValue value;
  value.literal = literal;
  value.where = entry_.where;
  sample.varies = entry_.signature.args[arg].name;
  const auto at = std::lower_bound(sample.values.begin(), sample.values.end(), arg,
                                   [](const auto& one, uint32_t index) { return one.first < index; });
  if (at != sample.values.end() && at->first == arg)
    at->second = value;
  else
    sample.values.insert(at, {arg, value});
  op_.derived.push_back(std::move(sample));
}

}  // namespace backplane::codegen
