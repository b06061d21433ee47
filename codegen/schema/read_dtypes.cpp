// `dtypes:`, in its short form (a class) and its long one (a map); see docs/reference/ops-yaml.md.
#include <algorithm>

#include "schema/reader.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

std::vector<std::string_view> class_names() {
  std::vector<std::string_view> names;
  for (const DtypeClass& c : dtype_classes()) names.push_back(c.name);
  return names;
}

class DtypeReader {
 public:
  DtypeReader(ValueReader& reader, Entry& entry) : reader_(reader), entry_(entry), rule_(entry.dtypes) {}

  void read(const YamlNode* node) {
    const Signature& signature = entry_.signature;
    rule_.accepts.assign(signature.args.size(), 0);
    rule_.results.assign(signature.results.size(), {});
    own_key_.assign(signature.args.size(), false);
    if (!node) {
      reader_.diagnostics().error(entry_.where,
                                  "'" + entry_.name() + "' has no 'dtypes'; write a class such as numeric or floating");
      for (size_t i = 0; i < signature.args.size(); ++i) rule_.accepts[i] = takes_dtype(i) ? BP_MASK_ANY : 0;
      default_promotion();
      return;
    }
    rule_.where = node->location();
    if (node->is(YamlNode::Kind::kMap)) {
      read_map(*node);
    } else {
      accept_ = read_class(*node);
      default_promotion();
    }
    for (size_t i = 0; i < signature.args.size(); ++i) {
      if (rule_.accepts[i] || !takes_dtype(i)) continue;
      rule_.accepts[i] = rule_.promote >> i & 1 ? accept_ : BP_MASK_ANY;
    }
  }

 private:
  bool takes_dtype(size_t arg) const {
    const uint16_t type = entry_.signature.args[arg].type;
    return type == BP_TYPE_TENSOR || type == BP_TYPE_SCALAR;
  }

  void default_promotion() {
    for (size_t i = 0; i < own_key_.size(); ++i)
      if (entry_.signature.args[i].is_tensor() && !own_key_[i]) rule_.promote |= uint64_t{1} << i;
  }

  bp_dtype_mask read_class(const YamlNode& node) {
    bp_dtype_mask mask = 0;
    for (const Text& word : reader_.read_words(node, "dtypes")) {
      if (const DtypeClass* c = find_dtype_class(word.value); c && node.is(YamlNode::Kind::kScalar)) {
        mask |= c->mask;
      } else if (const int dtype = find_dtype(word.value); dtype >= 0) {
        mask |= BP_DTYPE_BIT(dtype);
      } else {
        reader_.diagnostics().error(word.location(), "unknown dtype class '" + word.value + "'" +
                                                         suggestion(word.value, class_names()) + "; classes are " +
                                                         listed(class_names()) + ", or a list of dtype names");
      }
    }
    return mask;
  }

  void read_map(const YamlNode& node) {
    const YamlNode* promote = node.find("promote");
    for (const auto& [key, value] : node.entries) {
      const std::string& word = key->text.value;
      const int arg = entry_.signature.find_arg(word);
      const int result = entry_.signature.find_result(word);
      if (word == "accept")
        accept_ = read_class(*value);
      else if (word == "promote")
        continue;
      else if (word == "to_floating")
        set_flag(*value, word, BP_DTYPE_TO_FLOATING);
      else if (word == "same")
        set_flag(*value, word, BP_DTYPE_BITS);
      else if (word == "compares")
        set_flag(*value, word, BP_DTYPE_COMPARES);
      else if (word == "wraps")
        set_flag(*value, word, BP_DTYPE_WRAPS);
      else if (word == "compute" && arg < 0)
        read_compute(*value);
      else if (arg >= 0)
        read_argument(static_cast<size_t>(arg), *value);
      else if (result >= 0)
        read_result(static_cast<size_t>(result), *value);
      else
        unknown_key(*key);
    }
    if (!promote) return default_promotion();
    for (const Text& word : reader_.read_words(*promote, "promote")) {
      const int arg = entry_.signature.find_arg(word.value);
      if (arg < 0 || !takes_dtype(static_cast<size_t>(arg)))
        reader_.diagnostics().error(
            word.location(),
            "'" + word.value +
                "' is not a Tensor or Scalar argument; 'promote' lists those that share the compute dtype");
      else
        rule_.promote |= uint64_t{1} << arg;
    }
  }

  void set_flag(const YamlNode& value, const std::string& word, uint32_t flag) {
    if (reader_.read_bool(value, word)) rule_.flags |= flag;
  }

  void read_compute(const YamlNode& value) {
    if (!reader_.expect_scalar(value, "compute")) return;
    const std::string& word = value.text.value;
    if (word == "accumulate")
      rule_.half = HalfCompute::kAccumulate;
    else if (word == "own")
      rule_.half = HalfCompute::kOwn;
    else
      reader_.error(value, "'" + word +
                               "' is not a way to compute on half floats; write accumulate (the formulas run in "
                               "float32 and round once) or own (each op of a formula rounds)");
  }

  void unknown_key(const YamlNode& key) {
    std::vector<std::string_view> names = {"accept", "promote", "to_floating", "same", "compares", "wraps", "compute"};
    for (const Arg& arg : entry_.signature.args)
      if (arg.is_tensor()) names.push_back(arg.name);
    for (const ResultSpec& result : entry_.signature.results) names.push_back(result.name);
    reader_.error(key, "unknown key '" + key.text.value + "' in 'dtypes'" + suggestion(key.text.value, names) +
                           "; keys here are " + listed(names));
  }

  void read_argument(size_t arg, const YamlNode& value) {
    if (!takes_dtype(arg)) {
      reader_.error(value, "argument '" + entry_.signature.args[arg].name +
                               "' has no dtype; only Tensor and Scalar arguments do");
      return;
    }
    own_key_[arg] = true;
    rule_.accepts[arg] = read_class(value);
  }

  static int result_kind(std::string_view word) {
    if (word == "compute") return BP_RESULT_DTYPE_COMPUTE;
    if (word == "real") return BP_RESULT_DTYPE_REAL;
    if (word == "complex") return BP_RESULT_DTYPE_COMPLEX;
    if (word == "accumulate") return BP_RESULT_DTYPE_ACCUMULATE;
    return -1;
  }

  static std::string_view trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
  }

  void read_result(size_t index, const YamlNode& value) {
    if (!reader_.expect_scalar(value, "dtypes")) return;
    const std::string_view whole = value.text.value;
    const size_t bar = whole.find('|');
    const std::string_view word = trim(whole.substr(0, bar));
    bp_result_dtype& result = rule_.results[index];
    if (bar == std::string_view::npos && result_kind(word) >= 0) {
      result.kind = static_cast<uint16_t>(result_kind(word));
    } else if (bar == std::string_view::npos && find_dtype(word) >= 0) {
      result.kind = BP_RESULT_DTYPE_FIXED;
      result.param = static_cast<uint32_t>(find_dtype(word));
    } else if (const int arg = entry_.signature.find_arg(word); arg >= 0) {
      result.param = static_cast<uint32_t>(arg);
      read_from_argument(static_cast<size_t>(arg), bar == std::string_view::npos ? "" : trim(whole.substr(bar + 1)),
                         value, result);
    } else {
      reader_.error(value, "'" + std::string(whole) +
                               "' gives no dtype; write compute, real, complex, accumulate, a dtype, an argument, or "
                               "'dtype | FALLBACK'");
    }
  }

  void read_from_argument(size_t arg, std::string_view fallback, const YamlNode& value, bp_result_dtype& result) {
    const Arg& spec = entry_.signature.args[arg];
    if (spec.is_tensor() && fallback.empty()) {
      result.kind = BP_RESULT_DTYPE_OF_ARG;
      return;
    }
    result.kind = BP_RESULT_DTYPE_FROM_ARG;
    if (spec.type != BP_TYPE_DTYPE) {
      reader_.error(value, "argument '" + spec.name + "' is a " + std::string(type_name(spec.type)) +
                               "; a result's dtype is a Tensor's own or a Dtype argument");
    } else if (fallback.empty()) {
      if (spec.has(BP_ARG_OPTIONAL))
        reader_.error(
            value, "argument '" + spec.name + "' may be absent; write what then holds: '" + spec.name + " | compute'");
    } else if (result_kind(fallback) >= 0) {
      result.fallback = static_cast<uint16_t>(result_kind(fallback));
    } else if (find_dtype(fallback) >= 0) {
      result.fallback = BP_RESULT_DTYPE_FIXED;
      result.fallback_param = static_cast<uint32_t>(find_dtype(fallback));
    } else {
      reader_.error(value, "unknown fallback '" + std::string(fallback) +
                               "'; write compute, accumulate, real, complex or a dtype");
    }
  }

  ValueReader& reader_;
  Entry& entry_;
  DtypeRule& rule_;
  bp_dtype_mask accept_ = BP_MASK_ANY;
  std::vector<bool> own_key_;
};

}  // namespace

void read_dtypes(ValueReader& reader, const YamlNode* node, Entry& entry) { DtypeReader(reader, entry).read(node); }

}  // namespace backplane::codegen
