// See padded.hpp.
#include "schema/padded.hpp"

#include <algorithm>

namespace backplane::codegen {
namespace {

constexpr std::string_view kCall = "dynamic(", kSuffix = "_padded", kCount = "count";

bool calls_dynamic(const YamlNode& node) {
  return node.is(YamlNode::Kind::kScalar) && node.text.value.starts_with(kCall);
}

Text text_at(const Text& place, std::string value) {
  Text text = place;
  text.value = std::move(value);
  return text;
}

// "nms_padded.overload" of nms.overload.
std::string padded_name(const std::string& name) {
  const size_t end = std::min(name.find('.'), name.size());
  return name.substr(0, end) + std::string(kSuffix) + name.substr(end);
}

// A name for the results of the padded form that no argument has.
std::string free_name(const Signature& signature) {
  std::string name = "all_rows";
  while (signature.find_arg(name) >= 0) name += "_";
  return name;
}

// "nms_padded(Tensor boxes) -> (Tensor out, Tensor count)" of "nms(Tensor boxes) -> Tensor".
std::string padded_text(const Entry& padded, const std::string& name) {
  std::string text = padded.signature.text.value;
  text.replace(0, name.size(), padded.name());
  const size_t arrow = text.rfind("->");
  if (padded.padded.size() == 1) return text.substr(0, arrow) + "-> (Tensor out, Tensor count)";
  return text.substr(0, text.rfind(')')) + ", Tensor count)";
}

// Gives every argument to the padded form, and keeps the rows before the count.
std::string decomposition(const Entry& padded) {
  const std::string all = free_name(padded.signature);
  std::string text = "let " + all + " = " + padded.ns + "::" + padded.name() + "(";
  bool first = true;
  for (const Arg& arg : padded.signature.args) {
    text += first ? "" : ", ";
    text += (arg.has(BP_ARG_KEYWORD_ONLY) ? arg.name + "=" : std::string()) + arg.name;
    first = false;
  }
  text += "); ";
  const std::string count = all + "[" + std::to_string(padded.padded.size()) + "]";
  std::string results;
  for (size_t i = 0; i < padded.padded.size(); ++i) {
    const std::string one = all + "[" + std::to_string(i) + "]";
    const std::string kept = "bp::masked_select(" + one + ", bp::less(bp::iota(" + one + ".shape[0], device=" + one +
                             ".device), " + count + "))";
    results += (i ? ", " : "") + (padded.padded[i] ? kept : one);
  }
  return text + (padded.padded.size() > 1 ? "[" + results + "]" : results);
}

}  // namespace

bool states_largest_size(const YamlNode* shape) {
  if (!shape) return false;
  return calls_dynamic(*shape) ||
         std::any_of(shape->items.begin(), shape->items.end(), [](const YamlNode* one) { return calls_dynamic(*one); });
}

void make_padded(ValueReader& reader, Entry& entry) {
  Signature& signature = entry.signature;
  entry.padded.assign(signature.results.size(), false);
  const auto lists = [](const ResultSpec& result) { return result.is_list; };
  if (signature.changes || std::any_of(signature.results.begin(), signature.results.end(), lists))
    reader.diagnostics().error(entry.where, "'" + entry.name() +
                                                "' has a size that depends on values, so its results must be Tensors, "
                                                "and no argument can be Tensor(mut)");
  if (signature.find_result(kCount) >= 0)
    reader.diagnostics().error(entry.where, "the padded form of '" + entry.name() +
                                                "' has a result 'count' of its own; give yours another name");
  signature.name = padded_name(signature.name);
  entry.full_name = entry.ns + "::" + signature.name;
  ResultSpec count;
  count.name = kCount;
  count.nondiff = true;
  count.offset = signature.results.empty() ? 0 : signature.results.back().offset;
  signature.results.push_back(std::move(count));
}

bool read_largest_size(ValueReader& reader, ShapeSpec& shape) {
  const Expr* call = shape.expr.get();
  if (!call || call->kind != Expr::Kind::kCall || call->name != "dynamic") return false;
  if (!call->children.empty() || call->keywords.size() != 1 || call->keywords[0].name != "max") {
    reader.diagnostics().error(shape.text.location(call->offset),
                               "'dynamic' takes the largest size; write dynamic(max=x.shape[0]), or a list of sizes of "
                               "which the first is the largest: dynamic(max=[x.shape[0], 2])");
    shape.expr = nullptr;
    return true;
  }
  ExprPtr largest = std::move(shape.expr->keywords[0].value);
  if (largest->kind == Expr::Kind::kList) {
    shape.expr = std::move(largest);
    return true;
  }
  auto list = std::make_unique<Expr>();
  list->kind = Expr::Kind::kList;
  list->offset = largest->offset;
  list->depth = static_cast<uint16_t>(largest->depth + 1);
  list->children.push_back(std::move(largest));
  shape.expr = std::move(list);
  return true;
}

void add_count(Entry& entry) {
  bp_result_dtype& dtype = entry.dtypes.results.back();
  dtype = {};
  dtype.kind = BP_RESULT_DTYPE_FIXED;
  dtype.param = BP_INT64;
}

void add_exact_form(Entry& padded, Entry& entry, Diagnostics& diagnostics) {
  const size_t n = padded.padded.size();
  const Text place = padded.signature.text;
  entry.where = padded.where;
  entry.file = padded.file;
  entry.ns = padded.ns;
  entry.shared = padded.shared;
  entry.imported = padded.imported;
  entry.signature = padded.signature;
  std::string& name = entry.signature.name;
  name.erase(name.find(kSuffix), kSuffix.size());
  entry.signature.results.resize(n);
  padded.signature.text.value = padded_text(padded, name);
  entry.full_name = entry.ns + "::" + name;
  entry.made_of = &padded;
  entry.composite = true;
  entry.moves = padded.moves;
  entry.random = padded.random;
  entry.computes_where = padded.computes_where;
  entry.dtypes = padded.dtypes;
  entry.dtypes.results.resize(n);
  entry.doc = padded.doc;
  padded.doc.value = "The padded form of " + name + ": all rows, with zeros from row `count` on, and the count.";
  entry.example = std::move(padded.example);
  padded.example = {};
  entry.since = padded.since;
  entry.compare = padded.compare;
  entry.source = padded.source;
  entry.tags = padded.tags;
  entry.aliases = std::move(padded.aliases);
  padded.aliases.clear();
  entry.errors = padded.errors;
  entry.except = padded.except;
  entry.samples = padded.samples;
  for (Sample& sample : padded.samples) sample.expected.clear();  // of the op itself
  entry.fuzz = padded.fuzz;
  entry.tolerance = padded.tolerance;
  entry.revision = padded.revision;
  for (size_t i = 0; i < n && i < padded.shapes.size(); ++i) {
    const ShapeSpec& shape = padded.shapes[i];
    if (padded.padded[i]) {
      const Text word = text_at(shape.text, "dynamic");
      entry.shapes.push_back({word, parse_formula(word, diagnostics)});
    } else {
      entry.shapes.push_back({shape.text, shape.expr ? copy(*shape.expr) : nullptr});
    }
  }
  Rule decompose;
  decompose.where = padded.where;
  decompose.text = text_at(place, decomposition(padded));
  decompose.expr = parse_formula(decompose.text, diagnostics);
  entry.decompose = std::move(decompose);
  Rule batch;
  batch.kind = Rule::Kind::kRefused;
  batch.where = padded.where;
  batch.text = text_at(place, "call " + padded.full_name + ", which gives all rows and their count");
  entry.batch = std::move(batch);
}

}  // namespace backplane::codegen
