#include "graph/files/tensor_header.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backplane/device.hpp"

namespace backplane::core::graph {
namespace {

using Json = nlohmann::json;

constexpr int kDeepestHeader = 4;
constexpr size_t kMostAxes = 64;

struct DtypeWord {
  const char* word;
  bp_dtype dtype;
};
constexpr DtypeWord kWords[] = {{"BOOL", BP_BOOL},   {"I8", BP_INT8},       {"I16", BP_INT16},     {"I32", BP_INT32},
                                {"I64", BP_INT64},   {"U8", BP_UINT8},      {"U16", BP_UINT16},    {"U32", BP_UINT32},
                                {"U64", BP_UINT64},  {"F16", BP_FLOAT16},   {"BF16", BP_BFLOAT16}, {"F32", BP_FLOAT32},
                                {"F64", BP_FLOAT64}, {"F32", BP_COMPLEX64}, {"F64", BP_COMPLEX128}};

bp_dtype dtype_of_word(std::string_view word) {
  for (const DtypeWord& row : kWords)
    if (row.word == word) return row.dtype;
  return BP_DTYPE_NONE;
}

// Bytes of the elements; false beyond 64 bits.
bool bytes_of(const std::vector<int64_t>& shape, bp_dtype dtype, uint64_t& bytes) {
  bytes = static_cast<uint64_t>(dtype_size(dtype));
  for (const int64_t size : shape)
    if (size == 0) bytes = 0;
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return false;
  return true;
}

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  detail::fail(BP_ERROR_VALUE, parts...);
}

// What the parser calls. Depths count the open braces and brackets: names are keys at depth 1, a tensor's fields at 2.
class HeaderReader {
 public:
  explicit HeaderReader(TensorHeader& header) : header_(header) {}

  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& text);
  bool string(std::string& text);
  bool number_unsigned(uint64_t number);
  bool number_integer(int64_t number) { return other(std::to_string(number)); }
  bool number_float(double, const std::string& text) { return other(text); }
  bool boolean(bool value) { return other(value ? "true" : "false"); }
  bool null() { return other("null"); }
  template <class Bytes>
  bool binary(Bytes&) {
    return false;  // not of JSON texts
  }
  bool parse_error(size_t, const std::string&, const Json::exception& failure) {
    refuse("its header is not JSON: ", shown(failure.what()));
  }

 private:
  enum Field { kDtype, kShape, kOffsets, kFields, kOther = kFields };
  static constexpr const char* kFieldNames[kFields] = {"dtype", "shape", "data_offsets"};

  bool open(bool object);
  bool close();
  bool other(const std::string& found);
  void end_tensor();
  template <class... Parts>
  [[noreturn]] void wrong(const Parts&... parts) const {
    refuse("tensor \"", shown(name_), "\": ", parts...);
  }
  [[noreturn]] void wrong_value(const std::string& found) const;

  TensorHeader& header_;
  int depth_ = 0;
  bool in_metadata_ = false;
  std::string name_, entry_;  // of the tensor; of an entry of the metadata
  Field field_ = kOther;
  bool seen_[kFields] = {};
  StoredTensor tensor_{};
  std::vector<uint64_t> offsets_;
};

bool HeaderReader::key(std::string& text) {
  if (depth_ == 1) {
    name_ = std::move(text);
    in_metadata_ = name_ == kMetadata;
  } else if (in_metadata_) {
    entry_ = std::move(text);
  } else if (depth_ == 2) {
    field_ = static_cast<Field>(std::find(kFieldNames, kFieldNames + kFields, text) - kFieldNames);
    if (field_ != kOther && std::exchange(seen_[field_], true)) wrong("has its ", text, " twice");
  }
  return true;
}

void HeaderReader::wrong_value(const std::string& found) const {
  if (field_ == kDtype) wrong("its dtype ", found, " is not one that this version reads");
  if (field_ == kOffsets) wrong("its data_offsets are not two positions");
  if (depth_ == 2) wrong("its shape is not a list of at most ", kMostAxes, " sizes");
  wrong("found the size ", found, ", expected one from 0 to 2^63 - 1");
}

bool HeaderReader::open(bool object) {
  const char* found = object ? "{...}" : "[...]";
  if (depth_ == kDeepestHeader) refuse("its header nests values more than ", kDeepestHeader, " deep");
  if (depth_ == 0 && !object) refuse("its header is not a JSON object");
  if (in_metadata_ && depth_ > 0) {
    if (depth_ == 1 && !object) refuse("\"", kMetadata, "\" is not an object");
    if (depth_ > 1) refuse("\"", kMetadata, "\": \"", shown(entry_), "\" is not a string");
  } else if (depth_ == 1) {
    if (!object) wrong("expected an object with dtype, shape and data_offsets, found ", found);
    std::fill(seen_, seen_ + kFields, false);
    tensor_ = {};
    offsets_.clear();
    field_ = kOther;
  } else if (depth_ > 1 && field_ != kOther && (depth_ > 2 || object || field_ == kDtype)) {
    wrong_value(found);
  }
  ++depth_;
  return true;
}

bool HeaderReader::close() {
  --depth_;
  if (depth_ == 1 && !in_metadata_) end_tensor();
  return true;
}

bool HeaderReader::string(std::string& text) {
  if (in_metadata_ && depth_ == 2) {
    if (!header_.metadata.emplace(entry_, std::move(text)).second)
      refuse("\"", kMetadata, "\" has \"", shown(entry_), "\" twice");
    return true;
  }
  if (in_metadata_ || depth_ != 2 || field_ != kDtype) return other("\"" + shown(text) + "\"");
  tensor_.dtype = dtype_of_word(text);
  if (tensor_.dtype == BP_DTYPE_NONE) wrong_value("\"" + shown(text) + "\"");
  return true;
}

bool HeaderReader::number_unsigned(uint64_t number) {
  if (in_metadata_ || depth_ != 3 || (field_ != kShape && field_ != kOffsets)) return other(std::to_string(number));
  if (field_ == kOffsets) {
    offsets_.push_back(number);
    if (offsets_.size() > 2) wrong_value("");
    return true;
  }
  if (number > INT64_MAX) wrong_value(std::to_string(number));
  if (tensor_.shape.size() == kMostAxes) wrong("its shape is not a list of at most ", kMostAxes, " sizes");
  tensor_.shape.push_back(static_cast<int64_t>(number));
  return true;
}

// A value that none of the fields takes.
bool HeaderReader::other(const std::string& found) {
  if (in_metadata_ && depth_ == 1) refuse("\"", kMetadata, "\" is not an object");
  if (in_metadata_) refuse("\"", kMetadata, "\": \"", shown(entry_), "\" is not a string");
  if (depth_ == 1) wrong("expected an object with dtype, shape and data_offsets, found ", found);
  if (field_ != kOther) wrong_value(found);
  return true;
}

void HeaderReader::end_tensor() {
  for (int field = 0; field < kFields; ++field)
    if (!seen_[field]) wrong("expected an object with dtype, shape and data_offsets, found no ", kFieldNames[field]);
  field_ = kOffsets;
  if (offsets_.size() != 2) wrong_value("");
  const uint64_t begin = offsets_[0], end = offsets_[1];
  if (begin > end || !bytes_of(tensor_.shape, tensor_.dtype, tensor_.size) || tensor_.size != end - begin)
    wrong("its data_offsets ", begin, " to ", end, " do not fit its dtype and shape");
  tensor_.begin = begin;
  tensor_.name = name_;
  header_.tensors.push_back(std::move(tensor_));
}

// Sorting takes the same time whatever the names are. A table of hashes would not. The stable sort merges runs that are
// in order, as numbered names mostly are.
void sort_by_name(TensorHeader& header) {
  std::vector<uint32_t>& order = header.by_name;
  const auto name = [&](uint32_t i) -> const std::string& { return header.tensors[i].name; };
  const auto before = [&](uint32_t a, uint32_t b) { return name(a) < name(b); };
  order.resize(header.tensors.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), before);
  const auto twice =
      std::adjacent_find(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return name(a) == name(b); });
  if (twice != order.end()) refuse("its header has \"", shown(name(*twice)), "\" twice");
}

}  // namespace

std::string shown(const std::string& text) { return text.size() <= 60 ? text : text.substr(0, 57) + "..."; }

const char* word_of_dtype(bp_dtype dtype) {
  for (const DtypeWord& row : kWords)
    if (row.dtype == dtype) return row.word;
  return "";
}

const StoredTensor* TensorHeader::find(std::string_view name) const {
  const auto at = std::lower_bound(by_name.begin(), by_name.end(), name,
                                   [&](uint32_t i, std::string_view wanted) { return tensors[i].name < wanted; });
  return at != by_name.end() && tensors[*at].name == name ? &tensors[*at] : nullptr;
}

TensorHeader read_tensor_header(std::string_view text) {
  if (text.empty() || text[0] != '{') refuse("its header is not a JSON object");
  TensorHeader header;
  HeaderReader reader(header);
  Json::sax_parse(text.begin(), text.end(), &reader);
  sort_by_name(header);
  return header;
}

}  // namespace backplane::core::graph
