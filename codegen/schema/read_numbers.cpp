// See read_numbers.hpp.
#include "schema/read_numbers.hpp"

#include <cstdlib>

namespace backplane::codegen {
namespace {

using Kind = YamlNode::Kind;

bool is_number(const std::string& text) {
  if (text == "true" || text == "false" || text == "inf" || text == "-inf" || text == "nan") return true;
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size() && text.find_first_not_of("0123456789.+-eE") == text.npos;
}

class NumberReader {
 public:
  NumberReader(ValueReader& reader, TensorSample& tensor) : reader_(reader), tensor_(tensor) {}

  // Lists of one depth have one length.
  bool read(const YamlNode& node, size_t depth) {
    if (!node.is(Kind::kList)) return read_one(node, depth);
    const auto size = static_cast<int64_t>(node.items.size());
    if (rank_ >= 0 && depth >= static_cast<size_t>(rank_)) return fail(node, "a list");
    if (depth == tensor_.shape.size())
      tensor_.shape.push_back(size);
    else if (tensor_.shape[depth] != size)
      return fail(node, "a list of " + std::to_string(size));
    for (const YamlNode* item : node.items)
      if (!read(*item, depth + 1)) return false;
    return true;
  }

  std::string texts;

 private:
  bool read_one(const YamlNode& node, size_t depth) {
    if (rank_ < 0) rank_ = static_cast<int>(depth);
    if (depth != static_cast<size_t>(rank_) || depth != tensor_.shape.size()) return fail(node, "a number");
    if (!node.is(Kind::kScalar) || !is_number(node.text.value)) {
      reader_.error(node, "'" + node.text.value + "' is not a number; write one, or true, false, inf, -inf or nan");
      return false;
    }
    texts += (texts.empty() ? "" : ", ") + node.text.value;
    return true;
  }

  bool fail(const YamlNode& node, const std::string& found) {
    reader_.error(
        node, "the lists of a tensor have one length at each depth; found " + found + " beside others of another form");
    return false;
  }

  ValueReader& reader_;
  TensorSample& tensor_;
  int rank_ = -1;  // of the first number
};

}  // namespace

void read_numbers(ValueReader& reader, const YamlNode& node, TensorSample& tensor) {
  NumberReader numbers(reader, tensor);
  tensor.shape.clear();
  if (numbers.read(node, 0) && !numbers.texts.empty()) tensor.gen = "values([" + numbers.texts + "])";
}

}  // namespace backplane::codegen
