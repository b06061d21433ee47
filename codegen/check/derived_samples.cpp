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

// Of the sign that the entry's own number has: 0.7 for none and 0. No integer and no float32 has that value.
Literal other_number(const Literal* stated) {
  const double value = stated && is_number(*stated) ? number_of(*stated) : 0;
  return number(value != 0 && std::isfinite(value) ? value * 1.7 : 0.7);
}

Literal integer(int64_t value) {
  Literal literal;
  literal.kind = Literal::Kind::kInt;
  literal.integer = value;
  return literal;
}

const TensorSample* first_tensor(const Sample& sample) {
  for (const auto& [index, value] : sample.values)
    for (const auto& tensor : value.tensors)
      if (tensor) return &*tensor;
  return nullptr;
}

int64_t rank_of(const Sample& sample) {
  const TensorSample* tensor = first_tensor(sample);
  return tensor ? static_cast<int64_t>(tensor->shape.size()) : 0;
}

bool is_given(const Sample& sample, uint32_t index) {
  return std::any_of(sample.values.begin(), sample.values.end(), [&](const auto& one) { return one.first == index; });
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
  if (literal->kind == Literal::Kind::kInts) {
    std::string text;
    for (const int64_t one : literal->ints) text += std::to_string(one) + " ";
    return text;
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
  warn_of_lone_kernel();
  derive_broadcasts(usual, **base);
  for (uint32_t i = 0; i < entry_.signature.args.size(); ++i) {
    const Arg& arg = entry_.signature.args[i];
    const Literal* stated = literal_of(**base, i, arg);
    std::set<std::string> used;
    bool integers = true;
    for (const Sample* sample : usual) {
      const Literal* one = literal_of(*sample, i, arg);
      used.insert(text_of(one));
      integers = integers && one && one->kind == Literal::Kind::kInt;
    }
    const bool list = arg.has(BP_ARG_LIST);
    if (const auto* range = entry_.fuzz_of(i)) {
      for (const double at : {0.1875, 0.8125}) derive(**base, i, number(range->low + at * (range->high - range->low)));
    } else if (arg.type == BP_TYPE_SCALAR && !list && used.size() == 1) {
      const Literal other = other_number(stated);
      warn_unset(i, *used.begin());
      derive(**base, i, other);
    } else if (arg.type == BP_TYPE_SCALAR && !list && integers && entry_.ns != "bp") {
      derive(**base, i, other_number(stated));
    } else if (arg.type == BP_TYPE_SIZE && !list && used.size() == 1 && integers) {
      warn_unset(i, *used.begin());
      derive(**base, i, integer(stated->integer + 1));
    } else if (arg.type == BP_TYPE_AXIS && !list) {
      derive_axis(usual, i);
    } else if (arg.type == BP_TYPE_AXES && used.size() == 1) {
      derive_axes(**base, i);
    } else if (arg.is_tensor() && !list && arg.has(BP_ARG_OPTIONAL) &&
               std::none_of(usual.begin(), usual.end(), [&](const Sample* one) { return is_given(*one, i); })) {
      derive_tensor(**base, i);
    } else if (arg.type == BP_TYPE_BOOL && !list && used.size() == 1) {
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

// Another axis where all samples have the same one, and one counted from the other end where none is.
void OpCompiler::derive_axis(const std::vector<const Sample*>& usual, uint32_t arg) {
  std::set<int64_t> axes;
  bool from_start = false, from_end = false;
  const Sample* deepest = nullptr;
  int64_t at = 0;
  for (const Sample* sample : usual) {
    const Literal* stated = literal_of(*sample, arg, entry_.signature.args[arg]);
    if (!stated || stated->kind != Literal::Kind::kInt || !has_elements(*sample)) continue;
    const int64_t axis = stated->integer, rank = rank_of(*sample);
    (axis < 0 ? from_end : from_start) = true;
    axes.insert(axis < 0 ? axis + rank : axis);
    if (!deepest || rank > rank_of(*deepest)) deepest = sample, at = axis;
  }
  if (!deepest) return;
  const int64_t rank = rank_of(*deepest);
  if (rank < 1) return;
  if (axes.size() == 1 && rank < 2) return warn_unset(arg, std::to_string(at));
  if (axes.size() == 1) derive(*deepest, arg, integer(*axes.begin() == 0 ? rank - 1 : 0));
  if (from_start != from_end) derive(*deepest, arg, integer(at < 0 ? at + rank : at - rank));
}

void OpCompiler::derive_axes(const Sample& base, uint32_t arg) {
  const Literal* stated = literal_of(base, arg, entry_.signature.args[arg]);
  const int64_t rank = rank_of(base);
  if (rank < 1) return;
  Literal other;
  other.kind = Literal::Kind::kInts;
  if (stated && stated->kind == Literal::Kind::kInts)
    for (const int64_t axis : stated->ints) other.ints.push_back(axis < 0 ? axis + rank : axis - rank);
  if (other.ints.empty()) other.ints = {rank - 1};
  warn_unset(arg, text_of(stated));
  derive(base, arg, other);
}

// Of the kind of the first tensor.
void OpCompiler::derive_tensor(const Sample& base, uint32_t arg) {
  const TensorSample* first = first_tensor(base);
  if (!first) return;
  warn_unset(arg, "none");
  SampleValue value;
  value.kind = SampleValue::Kind::kTensor;
  value.tensors.emplace_back(*first);
  derive(base, arg, std::move(value));
}

// The tests compare the kernel with nothing then.
void OpCompiler::warn_of_lone_kernel() {
  const bool states_results = std::any_of(entry_.samples.begin(), entry_.samples.end(),
                                          [](const Sample& sample) { return !sample.expected.empty(); });
  if (!entry_.host || entry_.decompose || entry_.ns == "bp" || !entry_.padded.empty() || states_results) return;
  diagnostics_.warning(entry_.where, "nothing but its kernel states what '" + entry_.name() +
                                         "' computes, so that tests cannot find it wrong; add a sample with `values` "
                                         "and `expect`, or a decomposition");
}

// An elementwise op of several tensors that all samples give one shape: each tensor in turn with an axis that
// broadcasts.
void OpCompiler::derive_broadcasts(const std::vector<const Sample*>& usual, const Sample& base) {
  const auto tensors_of = [](const Sample& sample) {
    std::vector<std::pair<uint32_t, const TensorSample*>> found;
    for (const auto& [index, value] : sample.values)
      if (value.kind == SampleValue::Kind::kTensor && value.tensors[0]) found.emplace_back(index, &*value.tensors[0]);
    return found;
  };
  const auto tensors = tensors_of(base);
  if (!(op_.flags & BP_OP_ELEMENTWISE) || tensors.size() < 2 || tensors[0].second->shape.empty()) return;
  for (const Sample* sample : usual)
    for (const auto& [index, tensor] : tensors_of(*sample))
      if (tensor->shape != tensors_of(*sample)[0].second->shape) return;
  for (const auto& [index, tensor] : tensors) {
    SampleValue value;
    value.kind = SampleValue::Kind::kTensor;
    value.tensors.emplace_back(*tensor);
    value.tensors[0]->shape[0] = 1;
    if (value.tensors[0]->shape != tensor->shape) derive(base, index, std::move(value));
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
  SampleValue value;
  value.literal = literal;
  derive(base, arg, std::move(value));
}

void OpCompiler::derive(const Sample& base, uint32_t arg, SampleValue value) {
  Sample sample = base;
  sample.expected.clear();
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
