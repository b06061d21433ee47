#include "graph/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "backplane/device.hpp"

namespace backplane::core::graph {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
static_assert(std::endian::native == std::endian::little, "the format stores little-endian numbers");

constexpr uint64_t kMaxHeader = 100'000'000;  // what the format's own reader takes
constexpr int kMaxDepth = 4;
constexpr size_t kMostAxes = 64;
constexpr const char* kMetadata = "__metadata__";

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
const char* word_of_dtype(bp_dtype dtype) {
  for (const DtypeWord& row : kWords)
    if (row.dtype == dtype) return row.word;
  return "";
}
bool is_complex(bp_dtype dtype) { return (BP_DTYPE_BIT(dtype) & BP_MASK_COMPLEX) != 0; }

std::string shown(const std::string& text) { return text.size() <= 60 ? text : text.substr(0, 57) + "..."; }

// Bytes of the elements; false beyond 64 bits.
bool bytes_of(const std::vector<int64_t>& shape, bp_dtype dtype, uint64_t& bytes) {
  bytes = static_cast<uint64_t>(dtype_size(dtype));
  for (const int64_t size : shape)
    if (size == 0) bytes = 0;
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return false;
  return true;
}

}  // namespace

template <class... Parts>
void TensorFile::refuse(const Parts&... parts) const {
  detail::fail(BP_ERROR_VALUE, path_, ": ", parts...);
}

TensorFile::TensorFile(const std::string& path) : path_(path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (error) refuse("cannot be read: ", error.message());
  file_.open(path, std::ios::binary);
  uint64_t header = 0;
  if (!file_ || !file_.read(reinterpret_cast<char*>(&header), sizeof header))
    refuse("is not a safetensors file: it has ", size, " bytes, and the length of its header takes 8");
  if (header > kMaxHeader || header > size - sizeof header)
    refuse("is not a safetensors file, or was cut off: its header is to have ", header,
           " bytes, of which the file has ", size - sizeof header, "; a header has at most ", kMaxHeader);
  data_begin_ = sizeof header + header;
  read_header();
  check_layout(size - data_begin_);
}

void TensorFile::read_header() {
  std::string text(data_begin_ - sizeof(uint64_t), '\0');
  if (!file_.read(text.data(), static_cast<std::streamsize>(text.size()))) refuse("its header cannot be read");
  if (text.empty() || text[0] != '{') refuse("its header is not a JSON object");
  std::string last_key;
  std::vector<std::string> keys;
  const Json::parser_callback_t check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) refuse("its header nests values more than ", kMaxDepth, " deep");
    if (event == Json::parse_event_t::key && depth == 1) keys.push_back(value.get<std::string>());
    return true;
  };
  Json header;
  try {
    header = Json::parse(text, check);
  } catch (const Json::exception& failure) {
    refuse("its header is not JSON: ", shown(failure.what()));
  }
  std::sort(keys.begin(), keys.end());
  if (const auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end())
    refuse("its header has \"", shown(*twice), "\" twice");
  for (const auto& [name, value] : header.items()) {
    if (name != kMetadata) {
      read_tensor(name, value.dump(-1, ' ', true, Json::error_handler_t::replace));
      continue;
    }
    if (!value.is_object()) refuse("\"", kMetadata, "\" is not an object");
    for (const auto& [key, entry] : value.items()) {
      if (!entry.is_string()) refuse("\"", kMetadata, "\": \"", shown(key), "\" is not a string");
      metadata_[key] = entry.get<std::string>();
    }
  }
}

void TensorFile::read_tensor(const std::string& name, const std::string& text) {
  const Json value = Json::parse(text);
  const auto wrong = [&](const auto&... parts) { refuse("tensor \"", shown(name), "\": ", parts...); };
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets"))
    wrong("expected an object with dtype, shape and data_offsets, found ", shown(text));
  const Json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  StoredTensor tensor{name, BP_DTYPE_NONE, {}, 0, 0};
  if (dtype.is_string()) tensor.dtype = dtype_of_word(dtype.get<std::string>());
  if (tensor.dtype == BP_DTYPE_NONE) wrong("its dtype ", shown(dtype.dump()), " is none that this version reads");
  if (!shape.is_array() || shape.size() > kMostAxes) wrong("its shape is not a list of at most ", kMostAxes, " sizes");
  for (const Json& size : shape) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > INT64_MAX)
      wrong("found the size ", shown(size.dump()), ", expected one from 0 to 2^63 - 1");
    tensor.shape.push_back(size.get<int64_t>());
  }
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    wrong("its data_offsets are not two positions");
  const uint64_t begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  uint64_t bytes = 0;
  if (begin > end || !bytes_of(tensor.shape, tensor.dtype, bytes) || bytes != end - begin)
    wrong("its data_offsets ", begin, " to ", end, " do not fit its dtype and shape");
  tensor.begin = begin;
  tensor.size = bytes;
  by_name_.emplace(name, tensors_.size());
  tensors_.push_back(std::move(tensor));
}

// The format leaves no byte of the data to two tensors or to none.
void TensorFile::check_layout(uint64_t data_size) const {
  std::vector<const StoredTensor*> in_order;
  for (const StoredTensor& tensor : tensors_) in_order.push_back(&tensor);
  std::sort(in_order.begin(), in_order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->size < b->size;
  });
  uint64_t at = 0;
  for (const StoredTensor* tensor : in_order) {
    if (tensor->begin != at)
      refuse("tensor \"", shown(tensor->name), "\" begins at byte ", tensor->begin, " of the data, expected ", at);
    at += tensor->size;
    if (at > data_size || at < tensor->size)
      refuse("was cut off: tensor \"", shown(tensor->name), "\" ends at byte ", at, " of the data, which has ",
             data_size);
  }
  if (at != data_size) refuse("its data have ", data_size, " bytes, of which its tensors take ", at);
}

const StoredTensor* TensorFile::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &tensors_[at->second];
}

Tensor TensorFile::read(const StoredTensor& tensor, bp_device device) {
  return read(tensor, tensor.dtype, tensor.shape, device);
}

Tensor TensorFile::read(const StoredTensor& tensor, bp_dtype dtype, Shape shape, bp_device device) {
  std::vector<int64_t> stored(shape.begin(), shape.end());
  if (is_complex(dtype)) stored.push_back(2);
  if (stored != tensor.shape || std::string_view(word_of_dtype(dtype)) != word_of_dtype(tensor.dtype))
    refuse("tensor \"", shown(tensor.name), "\" holds another dtype or shape than ", dtype_name(dtype));
  std::vector<char> data(tensor.size);
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(data_begin_ + tensor.begin));
  if (!file_.read(data.data(), static_cast<std::streamsize>(data.size())))
    refuse("tensor \"", shown(tensor.name), "\": its data cannot be read");
  return from_host(data.data(), shape, {}, dtype, device);
}

namespace {

std::string header_text(std::span<const NamedTensor> tensors, const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  uint64_t at = 0;
  for (const NamedTensor& named : tensors) {
    std::vector<int64_t> shape(named.tensor.shape().begin(), named.tensor.shape().end());
    if (is_complex(named.tensor.dtype())) shape.push_back(2);
    const uint64_t end = at + named.tensor.get()->nbytes;
    BP_CHECK(named.name != kMetadata && !header.contains(named.name), VALUE, "two tensors of a file have the name \"",
             shown(named.name), "\", or one has the name of the metadata");
    header[named.name] = {
        {"dtype", word_of_dtype(named.tensor.dtype())}, {"shape", shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) & ~size_t{7}, ' ');  // the data begin aligned
  BP_CHECK(text.size() <= kMaxHeader, VALUE, "the header of the file would have ", text.size(),
           " bytes, and the format takes at most ", kMaxHeader);
  return text;
}

}  // namespace

void write_tensor_file(const std::string& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string header = header_text(tensors, metadata);
  const std::string unfinished = path + ".part";
  errno = 0;
  std::ofstream out(unfinished, std::ios::binary | std::ios::trunc);
  if (!out)
    detail::fail(BP_ERROR_VALUE, path, ": cannot be written: ", std::generic_category().message(errno),
                 errno == ENOENT ? ". Fix: make its folder first" : "");
  const uint64_t length = header.size();
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out.write(header.data(), static_cast<std::streamsize>(length));
  std::vector<char> data;
  for (const NamedTensor& named : tensors) {
    data.resize(named.tensor.get()->nbytes);
    to_host(named.tensor, data.data());
    out.write(data.data(), static_cast<std::streamsize>(data.size()));
  }
  out.close();
  std::error_code error;
  if (out) fs::rename(unfinished, path, error);
  if (out && !error) return;
  std::error_code ignored;
  fs::remove(unfinished, ignored);
  detail::fail(BP_ERROR_VALUE, path, ": cannot be written", error ? ": " + error.message() : "");
}

}  // namespace backplane::core::graph
