// samples.json: what tests need to know of every entry, with its samples parsed.
//
// Read by tests/python/laws and by `backplane conformance`. Infinity and NaN stand as Python's json reads them.
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

#include "check/names.hpp"
#include "emit/emit.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

std::string json_string(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned char>(c));
      result += escape;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  const std::string shown = text;
  return shown.find_first_of(".eE") == std::string::npos ? shown + ".0" : shown;
}

template <class Range, class Render>
std::string json_list(const Range& range, Render render) {
  std::string text = "[";
  for (const auto& item : range) text += (text.size() > 1 ? ", " : "") + render(item);
  return text + "]";
}

std::string json_literal(const Literal& value) {
  switch (value.kind) {
    case Literal::Kind::kBool:
      return value.integer ? "true" : "false";
    case Literal::Kind::kInt:
      return std::to_string(value.integer);
    case Literal::Kind::kFloat:
      return json_number(value.number);
    case Literal::Kind::kString:
      return json_string(value.text);
    case Literal::Kind::kDtype:
      return json_string(std::string(kDtypeNames[value.integer]));
    case Literal::Kind::kInts:
      return json_list(value.ints,
                       [](int64_t i) { return i == std::numeric_limits<int64_t>::min() ? "null" : std::to_string(i); });
    case Literal::Kind::kFloats:
      return json_list(value.floats, json_number);
    default:
      return "null";
  }
}

std::string json_tensor(const TensorSample& tensor) {
  return "{\"shape\": " + json_list(tensor.shape, [](int64_t n) { return std::to_string(n); }) +
         ", \"dtype\": " + json_string(tensor.dtype) + ", \"gen\": " + json_string(tensor.gen) +
         ", \"layout\": " + json_string(tensor.layout) + "}";
}

std::string json_sample_value(const SampleValue& value) {
  switch (value.kind) {
    case SampleValue::Kind::kTensor:
      return "{\"tensor\": " + json_tensor(*value.tensors[0]) + "}";
    case SampleValue::Kind::kTensorList:
      return "{\"tensors\": " +
             json_list(value.tensors, [](const auto& t) { return t ? json_tensor(*t) : std::string("null"); }) + "}";
    case SampleValue::Kind::kGenerator:
      return "{\"generator\": {\"key\": " + std::to_string(value.key) +
             ", \"counter\": " + std::to_string(value.counter) + "}}";
    default:
      return "{\"value\": " + json_literal(value.literal) + "}";
  }
}

std::vector<std::string> flags_of(const CompiledOp& op) {
  static constexpr std::pair<uint64_t, const char*> kNames[] = {{BP_OP_VIEW, "view"},
                                                                {BP_OP_MAYBE_VIEW, "maybe_view"},
                                                                {BP_OP_INPLACE, "inplace"},
                                                                {BP_OP_OUT, "out"},
                                                                {BP_OP_ELEMENTWISE, "elementwise"},
                                                                {BP_OP_REDUCTION, "reduction"},
                                                                {BP_OP_RANDOM, "random"},
                                                                {BP_OP_CREATION, "creation"},
                                                                {BP_OP_HOST, "host"},
                                                                {BP_OP_DYNAMIC, "dynamic"},
                                                                {BP_OP_PRIMITIVE, "primitive"},
                                                                {BP_OP_LINEAR, "linear"},
                                                                {BP_OP_COMPOSITE, "composite"},
                                                                {BP_OP_HIGHER_ORDER, "higher_order"},
                                                                {BP_OP_MOVES, "moves"}};
  std::vector<std::string> names;
  for (const auto& [flag, name] : kNames)
    if (op.flags & flag) names.push_back(name);
  if (op.entry->dtypes.flags & BP_DTYPE_TO_FLOATING) names.push_back("to_floating");
  if (op.entry->dtypes.flags & BP_DTYPE_BITS) names.push_back("same_dtypes");
  if (op.entry->dtypes.flags & BP_DTYPE_COMPARES) names.push_back("compares");
  return names;
}

std::string dtype_rule(const Entry& entry, size_t result) {
  const bp_result_dtype& rule = entry.dtypes.results[result];
  const auto kind = [](uint16_t k, uint32_t param) -> std::string {
    static constexpr const char* kKinds[] = {"compute", "", "", "", "real", "complex", "accumulate"};
    return k == BP_RESULT_DTYPE_FIXED ? std::string(kDtypeNames[param]) : kKinds[k];
  };
  if (rule.kind == BP_RESULT_DTYPE_OF_ARG) return entry.signature.args[rule.param].name;
  if (rule.kind == BP_RESULT_DTYPE_FROM_ARG)
    return entry.signature.args[rule.param].name + " | " + kind(rule.fallback, rule.fallback_param);
  return kind(rule.kind, rule.param);
}

std::string formula_kind(const CompiledFormula& formula) {
  if (formula.flags & BP_FORMULA_ZERO) return "zero";
  if (formula.flags & BP_FORMULA_REFUSED) return "none";
  if (formula.flags & BP_FORMULA_LOOP) return "loop";
  if (formula.rule == BP_RULE_BATCH) return formula.roots.empty() ? "derived" : "formula";
  return "formula";
}

class SampleWriter {
 public:
  SampleWriter(const EmitContext& context, const CompiledOp& op) : context_(context), op_(op), entry_(*op.entry) {}

  std::string write() {
    field("name", json_string(entry_.full_name));
    field("signature", json_string(entry_.signature.text.value));
    field("doc", json_string(entry_.doc.value));
    field("args", json_list(indices(entry_.signature.args.size()), [&](size_t i) { return arg(i); }));
    field("results", json_list(indices(entry_.signature.results.size()), [&](size_t i) { return result(i); }));
    field("flags", json_list(flags_of(op_), json_string));
    field("family", entry_.family.empty() ? "null" : json_string(entry_.family.value));
    field("alias", entry_.alias == BP_NO_ARG ? "null" : json_string(entry_.signature.args[entry_.alias].name));
    field("shape", json_list(entry_.shapes, [&](const ShapeSpec& s) {
            return json_string(whole_text(entry_, s.text, s.expr.get()));
          }));
    field("vjp", derivative(BP_RULE_VJP, entry_.vjp));
    field("jvp", derivative(BP_RULE_JVP, entry_.jvp));
    const CompiledFormula* batch = op_.find(BP_RULE_BATCH);
    const char* without = op_.flags & BP_OP_CREATION ? "creation" : "decompose";
    field("batch", json_string(batch ? formula_kind(*batch) : without));
    field("refusals", refusals());
    field("decompose", op_.find(BP_RULE_DECOMPOSE) ? "true" : "false");
    field("native", natives());
    field("scalar", scalars());
    field("tolerance", json_number(entry_.tolerance));
    field("compare", json_string(entry_.compare.empty() ? "close" : entry_.compare.value));
    field("except", word_map(entry_.except));
    field("errors", word_map(entry_.errors));
    if (!entry_.example.empty()) field("example", json_string(entry_.example.value));
    if (!entry_.aliases.empty())
      field("aliases", json_list(entry_.aliases, [](const Text& a) { return json_string(a.value); }));
    if (!entry_.spellings.empty()) field("spellings", spellings());
    if (!entry_.padded.empty())
      field("padded", json_list(entry_.padded, [](bool is) { return std::string(is ? "true" : "false"); }));
    field("tags", json_list(entry_.tags, [](const Text& t) { return json_string(t.value); }));
    if (!entry_.large_samples.empty()) out_ << ",\n   \"large\": [" << samples(entry_.large_samples) << "]";
    if (!op_.derived.empty()) out_ << ",\n   \"derived\": [" << samples(op_.derived) << "]";
    out_ << ",\n   \"samples\": [" << samples(entry_.samples) << "]}";
    return out_.str();
  }

 private:
  static constexpr const char* kRules[] = {"", "vjp", "jvp", "decompose", "batch", "put", "shape"};

  static std::vector<size_t> indices(size_t n) {
    std::vector<size_t> all(n);
    for (size_t i = 0; i < n; ++i) all[i] = i;
    return all;
  }

  void field(const char* key, const std::string& value) {
    out_ << (first_ ? "  {" : ",\n   ") << '"' << key << "\": " << value;
    first_ = false;
  }

  std::string arg(size_t i) const {
    const Arg& a = entry_.signature.args[i];
    std::vector<std::string> accepted;
    for (int d = 0; d < BP_DTYPE_COUNT; ++d)
      if (entry_.dtypes.accepts[i] & BP_DTYPE_BIT(d)) accepted.emplace_back(kDtypeNames[d]);
    const auto boolean = [](bool b) { return b ? "true" : "false"; };
    std::string text =
        "{\"name\": " + json_string(a.name) + ", \"type\": " + json_string(std::string(type_name(a.type)));
    text += std::string(", \"list\": ") + boolean(a.has(BP_ARG_LIST)) +
            ", \"optional\": " + boolean(a.has(BP_ARG_OPTIONAL));
    text += std::string(", \"optional_elements\": ") + boolean(a.has(BP_ARG_OPTIONAL_ELEMENTS)) +
            ", \"keyword_only\": " + boolean(a.has(BP_ARG_KEYWORD_ONLY));
    const std::string doc = argument_doc(entry_, a);
    if (!doc.empty()) text += ", \"doc\": " + json_string(doc);
    if (a.has(BP_ARG_HAS_DEFAULT)) text += ", \"default\": " + json_literal(a.default_value);
    return text + ", \"accepts\": " + json_list(accepted, json_string) +
           ", \"promote\": " + boolean(entry_.dtypes.promote >> i & 1) + "}";
  }

  std::string result(size_t i) const {
    const ResultSpec& r = entry_.signature.results[i];
    return "{\"name\": " + json_string(r.name) + ", \"list\": " + (r.is_list ? "true" : "false") +
           ", \"dtype\": " + json_string(dtype_rule(entry_, i)) +
           ", \"nondiff\": " + (is_differentiable_result(entry_, i) ? "false" : "true") + "}";
  }

  std::string derivative(uint16_t rule, const std::vector<Rule>& stated) const {
    std::string text = "{";
    for (size_t i = 0; i < entry_.signature.args.size(); ++i) {
      const CompiledFormula* formula = op_.find(rule, static_cast<uint32_t>(i));
      std::string kind = formula ? formula_kind(*formula) : "";
      if (formula && rule == BP_RULE_JVP && formula->text == "linear") kind = "linear";
      if (!formula && !stated.empty() && stated[0].kind == Rule::Kind::kDecompose && is_differentiable_arg(entry_, i))
        kind = "decompose";
      if (!kind.empty())
        text += (text.size() > 1 ? ", " : "") + json_string(entry_.signature.args[i].name) + ": " + json_string(kind);
    }
    return text + "}";
  }

  // What the entry refuses, and its reason: "vjp x", "batch", "put".
  std::string refusals() const {
    std::string text = "{";
    for (const CompiledFormula& formula : op_.formulas) {
      if (!(formula.flags & BP_FORMULA_REFUSED)) continue;
      std::string name = kRules[formula.rule];
      for (const uint32_t target : formula.targets) name += " " + entry_.signature.args[target].name;
      text += (text.size() > 1 ? ", " : "") + json_string(name) + ": " + json_string(formula.text);
    }
    return text + "}";
  }

  std::string natives() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < op_.formulas.size(); ++i) {
      if (native_name(context_, op_, i).empty()) continue;
      std::string name = kRules[op_.formulas[i].rule];
      for (const uint32_t target : op_.formulas[i].targets) name += " " + entry_.signature.args[target].name;
      names.push_back(name);
    }
    return json_list(names, json_string);
  }

  // The dtypes of its functions over elements, and whether the entry states their formulas.
  std::string scalars() const {
    std::vector<std::string> dtypes;
    for (const auto& function : context_.registry.scalars)
      if (function->entry == op_.entry && (dtypes.empty() || dtypes.back() != kDtypeNames[function->compute]))
        dtypes.emplace_back(kDtypeNames[function->compute]);
    return std::string("{\"stated\": ") + (op_.entry->states_scalar ? "true" : "false") +
           ", \"dtypes\": " + json_list(dtypes, json_string) + "}";
  }

  std::string spellings() const {
    WordMap texts;
    for (const OpSpelling& spelling : entry_.spellings) texts.emplace_back(spelling.text, spelling.meaning);
    return word_map(texts);
  }

  static std::string word_map(const WordMap& map) {
    std::string text = "{";
    for (const auto& [key, value] : map)
      text += (text.size() > 1 ? ", " : "") + json_string(key.value) + ": " + json_string(value.value);
    return text + "}";
  }

  std::string samples(const std::vector<Sample>& of_entry) const {
    std::string text;
    for (const Sample& sample : of_entry) {
      text += (text.empty() ? "\n    " : ",\n    ") + std::string("{\"args\": {");
      bool first = true;
      for (const auto& [index, value] : sample.values) {
        text += (first ? "" : ", ") + json_string(entry_.signature.args[index].name) + ": " + json_sample_value(value);
        first = false;
      }
      text += "}, \"error\": " + json_string(sample.error);
      if (!sample.expected.empty()) text += ", \"expect\": " + json_list(sample.expected, json_tensor);
      text += (sample.varies.empty() ? "" : ", \"varies\": " + json_string(sample.varies)) + "}";
    }
    return text;
  }

  const EmitContext& context_;
  const CompiledOp& op_;
  const Entry& entry_;
  std::ostringstream out_;
  bool first_ = true;
};

}  // namespace

void emit_samples(const EmitContext& context, OutputSet& out) {
  std::string text = "{\"namespace\": " + json_string(context.ns) + ",\n \"ops\": [";
  bool first = true;
  for (const CompiledOp& op : context.registry.ops) {
    text += (first ? "\n" : ",\n") + SampleWriter(context, op).write();
    first = false;
  }
  out.add("samples.json", text + "\n ]}\n");
}

}  // namespace backplane::codegen
