// Elements of arrays, and moving arrays to devices and back. See array.hpp.
#include "array.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "backplane/plugin/dtype.hpp"

namespace backplane::conformance {
namespace {

using plugin::dispatch_dtype;
using plugin::kIsComplex;
using plugin::kIsHalf;

template <class T>
T element_of(Number value) {
  if constexpr (kIsComplex<T>) {
    using Real = typename T::value_type;
    return {static_cast<Real>(value.re), static_cast<Real>(value.im)};
  } else if constexpr (kIsHalf<T>) {
    return T(static_cast<float>(value.re));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value.re);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value.re != 0;
  } else {
    if (!(std::fabs(value.re) < 0x1p64L)) return T{0};
    return value.re < 0 ? static_cast<T>(static_cast<int64_t>(std::max(value.re, -0x1p63L)))
                        : static_cast<T>(static_cast<uint64_t>(value.re));
  }
}

}  // namespace

Array::Array(bp_dtype element, std::vector<int64_t> sizes)
    : dtype(element), shape(std::move(sizes)), bytes(count() * static_cast<size_t>(dtype_size(element))) {}

size_t count_of(const std::vector<int64_t>& shape) {
  size_t product = 1;
  for (const int64_t size : shape) product *= static_cast<size_t>(size);
  return product;
}

size_t Array::count() const { return count_of(shape); }

Number Array::at(size_t i) const {
  return dispatch_dtype<BP_MASK_ANY>(dtype, [&]<class T>() -> Number {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    if constexpr (kIsComplex<T>)
      return {element.real(), element.imag()};
    else if constexpr (kIsHalf<T>)
      return {static_cast<float>(element), 0};
    else
      return {static_cast<long double>(element), 0};
  });
}

void Array::set(size_t i, Number value) {
  dispatch_dtype<BP_MASK_ANY>(dtype, [&]<class T>() {
    const T element = element_of<T>(value);
    std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
  });
}

Array as_dtype(const Array& array, bp_dtype dtype) {
  if (array.dtype == dtype) return array;
  Array made(dtype, array.shape);
  for (size_t i = 0; i < array.count(); ++i) made.set(i, array.at(i));
  return made;
}

bool is_inexact(bp_dtype dtype) { return (BP_DTYPE_BIT(dtype) & (BP_MASK_FLOATING | BP_MASK_COMPLEX)) != 0; }

double epsilon(bp_dtype dtype) {
  switch (dtype) {
    case BP_FLOAT16:
      return 0x1p-10;
    case BP_BFLOAT16:
      return 0x1p-7;
    case BP_FLOAT64:
    case BP_COMPLEX128:
      return std::numeric_limits<double>::epsilon();
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

std::vector<size_t> permuted(const std::vector<int64_t>& shape, const std::vector<size_t>& order) {
  std::vector<size_t> strides(shape.size(), 1), positions(count_of(shape)), index(shape.size(), 0);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * static_cast<size_t>(shape[d]);
  for (size_t& position : positions) {
    for (size_t d = 0; d < order.size(); ++d) position += index[d] * strides[order[d]];
    for (size_t d = order.size(); d-- > 0;) {
      if (++index[d] < static_cast<size_t>(shape[order[d]])) break;
      index[d] = 0;
    }
  }
  return positions;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

Array from_tensor(const Tensor& tensor) {
  Array made(tensor.dtype(), {tensor.shape().begin(), tensor.shape().end()});
  to_host(tensor, made.bytes.empty() ? nullptr : made.bytes.data());
  return made;
}

Tensor to_tensor(const Array& array, bp_device device) {
  return from_host(array.bytes.data(), array.shape, {}, array.dtype, device);
}

}  // namespace backplane::conformance
