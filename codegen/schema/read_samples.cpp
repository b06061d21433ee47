// `samples:` and `large:`, the generated inputs of an op's tests; see docs/reference/ops-yaml.md.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "schema/read_numbers.hpp"
#include "schema/reader.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

using Kind = YamlNode::Kind;

class SampleReader {
 public:
  SampleReader(ValueReader& reader, Entry& entry) : reader_(reader), entry_(entry) {}

  void read(const YamlNode* node) {
    if (!node && entry_.is_higher_order()) return;  // a sample cannot hold a function
    if (!node || (node->is(Kind::kList) && node->items.empty())) {
      reader_.diagnostics().error(node ? node->location() : entry_.where,
                                  "'" + entry_.name() + "' has no samples; write at least one");
      return;
    }
    if (!node->is(Kind::kList)) {
      reader_.error(*node, "'samples' must be a list of maps");
      return;
    }
    for (const YamlNode* item : node->items)
      if (reader_.expect_map(*item, "a sample")) read_sample(*item, entry_.samples);
  }

  void read_large(const YamlNode* node) {
    if (!node) return;
    if (!node->is(Kind::kList)) return reader_.error(*node, "'large' must be a list of samples");
    for (const YamlNode* item : node->items)
      if (reader_.expect_map(*item, "a sample")) read_sample(*item, entry_.large_samples);
  }

 private:
  void read_sample(const YamlNode& node, std::vector<Sample>& samples) {
    Sample sample;
    sample.where = node.location();
    std::vector<std::string_view> names = {"error", "expect"};
    const YamlNode* expected = nullptr;
    for (const Arg& arg : entry_.signature.args) names.push_back(arg.name);
    for (const auto& [key, value] : node.entries) {
      const std::string& word = key->text.value;
      const int arg = entry_.signature.find_arg(word);
      if (arg >= 0)
        sample.values.emplace_back(static_cast<uint32_t>(arg),
                                   read_value(*value, entry_.signature.args[static_cast<size_t>(arg)]));
      else if (word == "error")
        read_error(*value, sample);
      else if (word == "expect")
        expected = value;
      else
        reader_.error(*key, "'" + word + "' is not an argument of '" + entry_.name() + "'" + suggestion(word, names) +
                                "; a sample names arguments, 'error' and 'expect'");
    }
    for (size_t i = 0; i < entry_.signature.args.size(); ++i) {
      const Arg& arg = entry_.signature.args[i];
      const bool given =
          std::any_of(sample.values.begin(), sample.values.end(), [&](const auto& v) { return v.first == i; });
      if (!given && !arg.has(BP_ARG_HAS_DEFAULT))
        reader_.error(node, "the sample leaves out '" + arg.name + "', which has no default; give it a value");
    }
    std::stable_sort(sample.values.begin(), sample.values.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    if (expected) read_expected(*expected, sample);
    samples.push_back(std::move(sample));
  }

  // `expect: [0, 2]`, or with several results `expect: {values: [1.5], indices: [0]}`.
  void read_expected(const YamlNode& node, Sample& sample) {
    const std::vector<ResultSpec>& results = entry_.signature.results;
    const size_t n = entry_.padded.empty() ? results.size() : entry_.padded.size();
    for (size_t i = 0; i < n; ++i) {
      const YamlNode* stated = n == 1 ? &node : node.is(Kind::kMap) ? node.find(results[i].name) : nullptr;
      if (!stated || (node.is(Kind::kMap) && node.entries.size() != n)) {
        std::vector<std::string_view> names;
        for (size_t k = 0; k < n; ++k) names.push_back(results[k].name);
        return reader_.error(node, "'expect' must have the values of each result: {" + listed(names) + "}");
      }
      read_numbers(reader_, *stated, sample.expected.emplace_back());
    }
    if (!sample.error.empty()) reader_.error(node, "a sample states 'expect' or 'error', not both");
    if (!entry_.compare.empty() && entry_.compare.value != "close" && entry_.compare.value != "exact")
      reader_.error(
          node, "'expect' needs results that are compared as they are; 'compare' is '" + entry_.compare.value + "'");
    for (const auto& [index, value] : sample.values)
      for (const auto& tensor : value.tensors)
        if (tensor && !states_values(*tensor))
          reader_.error(node, "'expect' needs the values of every Tensor; '" + entry_.signature.args[index].name +
                                  "' states none: write {values: [[1, 2], [3, 4]]}");
  }

  static bool states_values(const TensorSample& tensor) {
    return tensor.gen.starts_with("values(") ||
           std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
  }

  void read_error(const YamlNode& value, Sample& sample) {
    if (!reader_.expect_scalar(value, "error")) return;
    sample.error = value.text.value;
    const auto& names = error_names();
    if (std::find(names.begin(), names.end(), sample.error) == names.end())
      reader_.error(value, "unknown error '" + sample.error + "'" + suggestion(sample.error, names) + "; errors are " +
                               listed(names));
  }

  SampleValue read_value(const YamlNode& node, const Arg& arg) {
    SampleValue value;
    value.where = node.location();
    if (arg.is_tensor() && arg.has(BP_ARG_LIST))
      read_tensor_list(node, arg, value);
    else if (arg.is_tensor() && (node.is(Kind::kMap) || node.is(Kind::kList)))
      read_tensor(node, value);
    else if (arg.type == BP_TYPE_GENERATOR)
      read_generator(node, value);
    else
      read_literal(node, arg, value.literal);
    return value;
  }

  void read_generator(const YamlNode& node, SampleValue& value) {
    value.kind = SampleValue::Kind::kGenerator;
    if (!reader_.expect_map(node, "a Generator's sample")) return;
    for (const auto& [key, item] : node.entries) {
      int64_t number = 0;
      if (!reader_.read_int(*item, key->text.value, number)) continue;
      if (key->text.value == "key")
        value.key = static_cast<uint64_t>(number);
      else if (key->text.value == "counter")
        value.counter = static_cast<uint64_t>(number);
      else
        reader_.error(*key,
                      "unknown key '" + key->text.value + "' of a Generator's sample; write {key: 1, counter: 0}");
    }
  }

  void read_tensor_list(const YamlNode& node, const Arg& arg, SampleValue& value) {
    value.kind = SampleValue::Kind::kTensorList;
    const YamlNode* list = node.is(Kind::kMap) ? node.find("list") : nullptr;
    if (!list || !list->is(Kind::kList) || node.entries.size() != 1) {
      reader_.error(node, "the sample of '" + arg.name + "' must be {list: [[2], [3]]}");
      return;
    }
    for (const YamlNode* item : list->items) {
      const bool none = item->is(Kind::kScalar) && item->text.value == "none";
      if (none && arg.has(BP_ARG_OPTIONAL_ELEMENTS)) {
        value.tensors.emplace_back();
        continue;
      }
      SampleValue element;
      read_tensor(*item, element);
      value.tensors.push_back(element.tensors.empty() ? TensorSample{} : element.tensors[0]);
    }
  }

  void read_tensor(const YamlNode& node, SampleValue& value) {
    value.kind = SampleValue::Kind::kTensor;
    TensorSample tensor;
    if (node.is(Kind::kList)) {
      read_shape(node, tensor.shape);
    } else if (reader_.expect_map(node, "a Tensor's sample")) {
      if (!node.find("shape") && !node.find("values"))
        reader_.error(node, "a Tensor's sample needs a shape; write {shape: [2, 3]} or [2, 3], or {values: [[1, 2]]}");
      if (node.find("values") && (node.find("shape") || node.find("gen")))
        reader_.error(node, "'values' gives the shape and the elements; remove 'shape' and 'gen'");
      for (const auto& [key, item] : node.entries) read_tensor_key(key->text.value, *key, *item, tensor);
    }
    value.tensors.emplace_back(std::move(tensor));
  }

  void read_tensor_key(const std::string& key, const YamlNode& at, const YamlNode& item, TensorSample& tensor) {
    if (key == "shape") {
      read_shape(item, tensor.shape);
    } else if (key == "values") {
      read_numbers(reader_, item, tensor);
    } else if (key != "dtype" && key != "gen" && key != "layout") {
      const std::vector<std::string_view> keys = {"shape", "values", "dtype", "gen", "layout"};
      reader_.error(
          at, "unknown key '" + key + "' of a Tensor's sample" + suggestion(key, keys) + "; keys are " + listed(keys));
    } else if (reader_.expect_scalar(item, key)) {
      if (key == "dtype") {
        tensor.dtype = item.text.value;
        if (find_dtype(tensor.dtype) < 0)
          reader_.error(item, "unknown dtype '" + tensor.dtype + "'; write a name such as float32");
      } else if (key == "gen") {
        tensor.gen = item.text.value;
        check_word(item, tensor.gen.substr(0, tensor.gen.find('(')), generators(), "generator");
      } else {
        tensor.layout = item.text.value;
        check_word(item, tensor.layout, layouts(), "layout");
      }
    }
  }

  void check_word(const YamlNode& at, const std::string& word, const std::vector<std::string_view>& words,
                  const std::string& what) {
    if (std::find(words.begin(), words.end(), word) == words.end())
      reader_.error(at,
                    "unknown " + what + " '" + word + "'" + suggestion(word, words) + "; there are " + listed(words));
  }

  void read_shape(const YamlNode& node, std::vector<int64_t>& shape) {
    if (!node.is(Kind::kList)) {
      reader_.error(node, "a shape is a list of sizes, e.g. [2, 3]");
      return;
    }
    for (const YamlNode* item : node.items) {
      int64_t size = 0;
      if (!reader_.read_int(*item, "shape", size)) continue;
      if (size < 0) reader_.error(*item, "a size cannot be negative");
      shape.push_back(size);
    }
  }

  void read_literal(const YamlNode& node, const Arg& arg, Literal& out) {
    if (node.is(Kind::kList)) {
      out.kind = Literal::Kind::kInts;
      for (const YamlNode* item : node.items) {
        Literal element;
        read_scalar(*item, element);
        if (element.kind == Literal::Kind::kFloat) out.kind = Literal::Kind::kFloats;
        out.ints.push_back(element.kind == Literal::Kind::kNone ? std::numeric_limits<int64_t>::min()
                                                                : element.integer);
        out.floats.push_back(element.number);
      }
      return;
    }
    if (node.is(Kind::kNull)) return;
    if (!reader_.expect_scalar(node, arg.name)) return;
    out.text = node.text.value;
    if (arg.type == BP_TYPE_STR || arg.type == BP_TYPE_DEVICE) {
      out.kind = Literal::Kind::kString;
      return;
    }
    read_scalar(node, out);
  }

  void read_scalar(const YamlNode& node, Literal& out) {
    const std::string& text = node.text.value;
    out.text = text;
    const char* end = text.data() + text.size();
    if (text == "none") return;
    if (text == "true" || text == "false") {
      out.kind = Literal::Kind::kBool;
      out.integer = text == "true";
    } else if (std::from_chars(text.data(), end, out.integer).ptr == end) {
      out.kind = Literal::Kind::kInt;
      out.number = static_cast<double>(out.integer);
    } else if (find_dtype(text) >= 0) {
      out.kind = Literal::Kind::kDtype;
      out.integer = find_dtype(text);
    } else {
      char* stop = nullptr;
      out.number = std::strtod(text.c_str(), &stop);
      out.kind = Literal::Kind::kFloat;
      if (stop != text.c_str() + text.size() || text.empty())
        reader_.error(node, "'" + text + "' is not a value; write a number, true, false, none, a list or a dtype");
    }
  }

  ValueReader& reader_;
  Entry& entry_;
};

}  // namespace

void read_samples(ValueReader& reader, const YamlNode* samples, const YamlNode* large, Entry& entry) {
  SampleReader of_entry(reader, entry);
  of_entry.read(samples);
  of_entry.read_large(large);
}

}  // namespace backplane::codegen
