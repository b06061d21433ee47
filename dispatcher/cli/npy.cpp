#include "cli/npy.hpp"

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <vector>

#include "backplane/device.hpp"
#include "backplane/op.hpp"
#include "backplane/plugin/whole_file.hpp"

namespace backplane::cli {
namespace {

constexpr std::array<char, 6> kMagic = {'\x93', 'N', 'U', 'M', 'P', 'Y'};
constexpr size_t kMaxHeader = 1 << 16;
constexpr size_t kMaxRank = 64;

struct Name {
  const char* name;  // behind the byte order
  bp_dtype dtype;
};
constexpr Name kNames[] = {{"b1", BP_BOOL},      {"i1", BP_INT8},       {"i2", BP_INT16},   {"i4", BP_INT32},
                           {"i8", BP_INT64},     {"u1", BP_UINT8},      {"u2", BP_UINT16},  {"u4", BP_UINT32},
                           {"u8", BP_UINT64},    {"f2", BP_FLOAT16},    {"f4", BP_FLOAT32}, {"f8", BP_FLOAT64},
                           {"c8", BP_COMPLEX64}, {"c16", BP_COMPLEX128}};

template <class... Parts>
[[noreturn]] void refuse(const std::string& path, const Parts&... parts) {
  detail::fail(BP_ERROR_VALUE, path, ": ", parts...);
}

// The value of 'key': in the header, up to a comma outside of parentheses or the closing brace.
std::string entry(const std::string& header, const char* key) {
  size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string::npos) return "";
  at = header.find(':', at);
  if (at == std::string::npos) return "";
  std::string text;
  int depth = 0;
  for (++at; at < header.size(); ++at) {
    const char c = header[at];
    if (depth == 0 && (c == ',' || c == '}')) break;
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c != ' ') text += c;
  }
  return text;
}

bp_dtype dtype_of(const std::string& text, bp_dtype wanted) {
  if (text.size() < 4 || text.front() != '\'' || text.back() != '\'') return BP_DTYPE_NONE;
  if (text[1] != '<' && text[1] != '|' && text[1] != '=') return BP_DTYPE_NONE;
  const std::string name = text.substr(2, text.size() - 3);
  if (wanted == BP_BFLOAT16 && name == "V2") return BP_BFLOAT16;  // so NumPy writes ml_dtypes' bfloat16
  for (const Name& row : kNames)
    if (name == row.name) return row.dtype;
  return BP_DTYPE_NONE;
}

// In elements, of an array whose first axis runs fastest.
std::vector<int64_t> column_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = 1; i < shape.size(); ++i) strides[i] = strides[i - 1] * shape[i - 1];
  return strides;
}

std::vector<int64_t> shape_of(const std::string& path, const std::string& text) {
  std::vector<int64_t> shape;
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') refuse(path, "its shape is ", text);
  const char *at = text.data() + 1, *end = text.data() + text.size() - 1;
  while (at != end) {
    int64_t size = -1;
    const auto read = std::from_chars(at, end, size);
    if (read.ec != std::errc() || size < 0 || shape.size() == kMaxRank) refuse(path, "its shape is ", text);
    shape.push_back(size);
    at = read.ptr;
    if (at != end && *at++ != ',') refuse(path, "its shape is ", text);
  }
  return shape;
}

std::string read_header(const std::string& path, std::ifstream& in) {
  std::array<char, 8> begin{};
  if (!in.read(begin.data(), begin.size()) || !std::equal(kMagic.begin(), kMagic.end(), begin.begin()))
    refuse(path, "is not a NumPy file (.npy)");
  uint32_t length = 0;
  const bool first = begin[6] == 1;
  if (begin[6] < 1 || begin[6] > 3) refuse(path, "has version ", int{begin[6]}, " of the format, which is not known");
  in.read(reinterpret_cast<char*>(&length), first ? 2 : 4);
  if (!in || length > kMaxHeader) refuse(path, "its header has ", length, " bytes, expected at most ", kMaxHeader);
  std::string header(length, '\0');
  if (!in.read(header.data(), length)) refuse(path, "was cut off in its header");
  return header;
}

}  // namespace

Tensor read_npy(const std::string& path, bp_dtype wanted, bp_device device) {
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(path, "cannot be opened for reading");
  const std::string header = read_header(path, in);
  const std::string descr = entry(header, "descr");
  const bp_dtype dtype = dtype_of(descr, wanted);
  if (dtype == BP_DTYPE_NONE) refuse(path, "its dtype is ", descr, ". Fix: save it as a little-endian number or bool");
  const std::string by_columns = entry(header, "fortran_order");
  if (by_columns != "False" && by_columns != "True") refuse(path, "its fortran_order is ", by_columns);
  const std::vector<int64_t> shape = shape_of(path, entry(header, "shape"));
  const std::streamoff begin = in.tellg();
  in.seekg(0, std::ios::end);
  const auto size = static_cast<uint64_t>(in.tellg() - begin);
  auto bytes = static_cast<uint64_t>(dtype_size(dtype));
  for (const int64_t n : shape)
    if (n == 0) bytes = 0;
  for (const int64_t n : shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes)) refuse(path, "its shape does not fit 64 bits");
  if (size != bytes) refuse(path, "has ", size, " bytes of elements, expected ", bytes);
  std::vector<char> data(bytes);
  in.seekg(begin);
  if (!in.read(data.data(), static_cast<std::streamsize>(bytes))) refuse(path, "cannot be read");
  const std::vector<int64_t> strides = by_columns == "True" ? column_strides(shape) : std::vector<int64_t>();
  Tensor read = from_host(data.data(), shape, strides, dtype, device);
  if (wanted != BP_BFLOAT16 || dtype != BP_FLOAT32) return read;
  return call(find_op("bp::cast"), {value(read), dtype_value(BP_BFLOAT16)});
}

void write_npy(const std::string& path, const Tensor& given) {
  const Tensor tensor =
      given.dtype() == BP_BFLOAT16 ? call(find_op("bp::cast"), {value(given), dtype_value(BP_FLOAT32)}) : given;
  std::string name;
  for (const Name& row : kNames)
    if (row.dtype == tensor.dtype()) name = row.name;
  std::string shape;
  for (const int64_t n : tensor.shape()) shape += std::to_string(n) + ",";
  std::string header = "{'descr': '" + std::string(dtype_size(tensor.dtype()) == 1 ? "|" : "<") + name +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // The elements begin at a multiple of 64.
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::string bytes(kMagic.begin(), kMagic.end());
  bytes.append("\1\0", 2).append(reinterpret_cast<const char*>(&length), 2).append(header);
  const size_t begin = bytes.size();
  bytes.resize(begin + tensor.get()->nbytes);
  to_host(tensor, bytes.data() + begin);
  try {
    plugin::write_whole_file(path, bytes);
  } catch (const plugin::FileError& failure) {
    refuse(path, failure.what());
  }
}

}  // namespace backplane::cli
