#include "graph/files/safetensors.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "backplane/device.hpp"
#include "backplane/plugin/whole_file.hpp"
#include "call/data.hpp"

namespace backplane::core::graph {
namespace {

using Json = nlohmann::json;
static_assert(std::endian::native == std::endian::little, "the format stores little-endian numbers");

constexpr uint64_t kMaxHeader = 100'000'000;  // what the format's own reader takes
bool is_complex(bp_dtype dtype) { return (BP_DTYPE_BIT(dtype) & BP_MASK_COMPLEX) != 0; }

}  // namespace

template <class... Parts>
void TensorFile::refuse(const Parts&... parts) const {
  detail::fail(BP_ERROR_VALUE, path_, ": ", parts...);
}

TensorFile::TensorFile(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rbe"), std::fclose) {
  if (path.find('\0') != std::string::npos) refuse("cannot be read: its path has a zero byte. Fix: leave it out");
  struct stat about;
  if (!file_ || fstat(fileno(file_.get()), &about) != 0) refuse("cannot be read: ", std::strerror(errno));
  if (!S_ISREG(about.st_mode)) refuse("cannot be read: it is not a regular file");
  const auto size = static_cast<uint64_t>(about.st_size);
  uint64_t header = 0;
  if (!read_bytes(reinterpret_cast<char*>(&header), sizeof header, 0))
    refuse("is not a safetensors file: it has ", size, " bytes, and the length of its header takes 8");
  if (header > kMaxHeader || header > size - sizeof header)
    refuse("is not a safetensors file, or was cut off: its header should have ", header, " bytes, but the file has ",
           size - sizeof header, "; a header has at most ", kMaxHeader);
  data_begin_ = sizeof header + header;
  read_header();
  check_layout(size - data_begin_);
}

// Whether all of them could be read.
bool TensorFile::read_bytes(char* to, uint64_t size, uint64_t begin) const {
  while (size > 0) {
    const ssize_t n = pread(fileno(file_.get()), to, size, static_cast<off_t>(begin));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    size -= static_cast<uint64_t>(n);
    begin += static_cast<uint64_t>(n);
  }
  return true;
}

void TensorFile::read_header() {
  std::string text(data_begin_ - sizeof(uint64_t), '\0');
  if (!read_bytes(text.data(), text.size(), sizeof(uint64_t))) refuse("its header cannot be read");
  try {
    header_ = read_tensor_header(text);
  } catch (const Error& error) {
    refuse(error.what());
  }
}

// The format leaves no byte of the data to two tensors or to none.
void TensorFile::check_layout(uint64_t data_size) const {
  std::vector<const StoredTensor*> in_order;
  for (const StoredTensor& tensor : tensors()) in_order.push_back(&tensor);
  const auto before = [](const StoredTensor* a, const StoredTensor* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->size < b->size;
  };
  if (!std::is_sorted(in_order.begin(), in_order.end(), before)) std::sort(in_order.begin(), in_order.end(), before);
  uint64_t at = 0;
  for (const StoredTensor* tensor : in_order) {
    if (tensor->begin != at)
      refuse("tensor \"", shown(tensor->name), "\" begins at byte ", tensor->begin, " of the data, expected ", at);
    at += tensor->size;
    if (at > data_size || at < tensor->size)
      refuse("was cut off: tensor \"", shown(tensor->name), "\" ends at byte ", at, " of the data, which has ",
             data_size);
  }
  if (at != data_size) refuse("its data have ", data_size, " bytes, but its tensors take ", at);
}

Tensor TensorFile::read(const StoredTensor& tensor, bp_device device) const {
  return read(tensor, tensor.dtype, tensor.shape, device);
}

Tensor TensorFile::read(const StoredTensor& tensor, bp_dtype dtype, Shape shape, bp_device device) const {
  std::vector<int64_t> stored(shape.begin(), shape.end());
  if (is_complex(dtype)) stored.push_back(2);
  if (stored != tensor.shape || std::string_view(word_of_dtype(dtype)) != word_of_dtype(tensor.dtype))
    refuse("tensor \"", shown(tensor.name), "\" holds another dtype or shape than ", dtype_name(dtype));
  return filled("load", shape, dtype, device, [&](char* data) {
    if (!read_bytes(data, tensor.size, data_begin_ + tensor.begin))
      refuse("tensor \"", shown(tensor.name), "\": its data cannot be read");
  });
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
  const uint64_t length = header.size();
  try {
    plugin::WholeFile out(path, true);
    out.write({reinterpret_cast<const char*>(&length), sizeof length});
    out.write(header);
    std::vector<char> data;
    for (const NamedTensor& named : tensors) {
      data.resize(named.tensor.get()->nbytes);
      to_host(named.tensor, data.data());
      out.write({data.data(), data.size()});
    }
    out.commit();
  } catch (const plugin::FileError& failure) {
    detail::fail(BP_ERROR_VALUE, path, ": ", failure.what());
  }
}

}  // namespace backplane::core::graph
