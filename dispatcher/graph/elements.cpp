#include "graph/elements.hpp"

#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>

#include "backplane/device.hpp"
#include "backplane/plugin/dtype.hpp"
#include "graph/text/lexer.hpp"

namespace backplane::core::graph {
namespace {

using plugin::bfloat16;
using plugin::float16;

// Calls f with a value of the type in which the dtype's elements are written: its own, of complex ones the halves'.
template <class F>
auto with_type(bp_dtype dtype, F f) {
  switch (dtype) {
#define CASE(constant, number, name, type, bytes, code) \
  case BP_##constant:                                   \
    return f(type{});
    BP_DTYPES(CASE)
#undef CASE
    default:
      detail::fail(BP_ERROR_DTYPE, "there is no dtype ", dtype);
  }
}

template <class T>
struct Half {
  using type = T;
};
template <class T>
struct Half<std::complex<T>> {
  using type = T;
};

template <class T>
constexpr bool kFloating = std::is_floating_point_v<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

template <class T>
std::string number_text(T number) {
  if constexpr (kFloating<T>) {
    if constexpr (std::is_same_v<T, float>) {
      if (!std::isfinite(number)) return float_text(number);
      char digits[40];
      const auto end = std::to_chars(digits, digits + sizeof digits, number);
      std::string text(digits, end.ptr);
      return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
    }
    return float_text(static_cast<double>(number));
  } else {
    return std::to_string(+number);
  }
}

template <class T>
bool from_text(const std::string& text, T& number) {
  const char *begin = text.data(), *end = begin + text.size();
  if constexpr (kFloating<T>) {
    double wide = 0;
    if constexpr (std::is_same_v<T, float>) {
      const auto read = std::from_chars(begin, end, number);
      return read.ec == std::errc() && read.ptr == end;
    }
    const auto read = std::from_chars(begin, end, wide);
    if (read.ec != std::errc() || read.ptr != end) return false;
    if constexpr (std::is_same_v<T, double>)
      number = wide;
    else
      number = T(static_cast<float>(wide));
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    number = text == "1";
    return text == "0" || text == "1";
  } else {
    const auto read = std::from_chars(begin, end, number);
    return read.ec == std::errc() && read.ptr == end;
  }
}

}  // namespace

std::string elements_text(const Tensor& tensor) {
  std::vector<char> data(tensor.get()->nbytes);
  to_host(tensor, data.data());
  return with_type(tensor.dtype(), [&](auto of) -> std::string {
    using T = typename Half<decltype(of)>::type;
    std::string text;
    for (size_t at = 0; at < data.size(); at += sizeof(T)) {
      T number;
      std::memcpy(&number, data.data() + at, sizeof(T));
      const std::string one = number_text(number);
      T back{};
      if (!from_text(one, back) || std::memcmp(&back, &number, sizeof(T)) != 0) return "";
      text += (at ? ", " : "") + one;
    }
    return text;
  });
}

bool append_element(std::vector<char>& bytes, bp_dtype dtype, const std::string& text) {
  return with_type(dtype, [&](auto of) {
    using T = typename Half<decltype(of)>::type;
    T number{};
    if (!from_text(text, number)) return false;
    const char* begin = reinterpret_cast<const char*>(&number);
    bytes.insert(bytes.end(), begin, begin + sizeof(T));
    return true;
  });
}

}  // namespace backplane::core::graph
