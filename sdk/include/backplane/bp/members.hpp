// The definitions of Tensor's members. The ops are defined in bp/ops.hpp, indexing in bp/indexing.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "backplane/bp/ops.hpp"

namespace bp {

namespace detail {

inline int64_t checked_axis(const char* who, int64_t axis, int64_t ndim) {
  BP_CHECK(axis >= -ndim && axis < ndim, INDEX, who, ": found axis ", axis, ", expected one from ", -ndim, " to ",
           ndim - 1, " for a tensor of ", ndim, " axes");
  return axis < 0 ? axis + ndim : axis;
}

// A number that an element becomes, if T holds it.
template <class T, class From>
T checked_number(From found) {
  if constexpr (std::is_same_v<T, bool>) {
    return found != From{0};
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<From>) {
    // The limits as powers of two, which a double holds.
    const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const double lowest = std::is_signed_v<T> ? -limit : 0.0;
    BP_CHECK(found >= static_cast<From>(lowest) && found < static_cast<From>(limit), OVERFLOW, "item: found ", found,
             ", which the integer type that was asked for does not hold");
    return static_cast<T>(found);
  } else if constexpr (std::is_integral_v<T>) {
    BP_CHECK(std::in_range<T>(found), OVERFLOW, "item: found ", +found,
             ", which the integer type that was asked for does not hold");
    return static_cast<T>(found);
  } else {
    return static_cast<T>(found);
  }
}

// The elements of a tensor of dtype From.
template <class T, class From>
std::vector<T> read_as(const backplane::Tensor& x) {
  size_t count = 1;
  for (const int64_t n : x.shape()) count *= static_cast<size_t>(n);
  const std::unique_ptr<From[]> elements(new From[count ? count : 1]);  // std::vector<bool> has bits
  backplane::to_host(x, elements.get());
  std::vector<T> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<T>(elements[i]);
  return numbers;
}

}  // namespace detail

inline int64_t Tensor::size(int64_t axis) const {
  return plain_.shape()[static_cast<size_t>(detail::checked_axis("size", axis, dim()))];
}

inline int64_t Tensor::numel() const {
  int64_t count = 1;
  for (const int64_t n : plain_.shape()) count *= n;
  return count;
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  BP_CHECK(!is_complex(), DTYPE, "to_vector: found ", backplane::dtype_name(dtype()),
           ", expected real elements. Fix: take real(x) and imag(x)");
  const backplane::Tensor value = backplane::plain_value(plain_, "to_vector");
  switch (value.dtype()) {
    case BP_BOOL:
      return detail::read_as<T, bool>(value);
    case BP_INT32:
      return detail::read_as<T, int32_t>(value);
    case BP_INT64:
      return detail::read_as<T, int64_t>(value);
    case BP_FLOAT32:
      return detail::read_as<T, float>(value);
    case BP_FLOAT64:
      return detail::read_as<T, double>(value);
    default:
      return detail::read_as<T, T>(value.dtype() == dtype_of<T>() ? value : backplane::cast(value, dtype_of<T>()));
  }
}

template <class T>
T Tensor::item() const {
  static_assert(std::is_arithmetic_v<T>, "item<T>: T is a number, such as item<float>()");
  BP_CHECK(numel() == 1, VALUE, "item: found a tensor of ", numel(),
           " elements, expected 1. Fix: index or reduce it first");
  BP_CHECK(!is_complex(), DTYPE, "item: found ", backplane::dtype_name(dtype()),
           ", expected a real element. Fix: take real(x) or imag(x)");
  if (is_floating_point()) return detail::checked_number<T>(to_vector<double>()[0]);
  if (dtype() == kUInt64) return detail::checked_number<T>(to_vector<uint64_t>()[0]);
  return detail::checked_number<T>(to_vector<int64_t>()[0]);
}

template <class T>
T* Tensor::data_ptr() const {
  BP_CHECK(dtype() == dtype_of<T>(), DTYPE, "data_ptr: found ", backplane::dtype_name(dtype()), ", expected ",
           backplane::dtype_name(dtype_of<T>()), ". Fix: name the element's type, or cast with to()");
  BP_CHECK(device() == Device("cpu"), DEVICE, "data_ptr: found a tensor on ", device().name(),
           ", expected one in host memory. Fix: x.cpu()");
  BP_CHECK(is_contiguous(), VALUE, "data_ptr: found a tensor that is not contiguous. Fix: x.contiguous()");
  const backplane::Tensor value = backplane::plain_value(plain_, "data_ptr");
  BP_CHECK(value.get() == plain_.get(), VALUE,
           "data_ptr: found a tensor inside a transform, whose memory is not its own. Fix: call it outside");
  backplane::synchronize(plain_.device());
  return reinterpret_cast<T*>(static_cast<char*>(plain_.get()->dl.data) + plain_.get()->dl.byte_offset);
}

inline Tensor Tensor::to(bp_dtype wanted) const { return wanted == dtype() ? *this : cast(wanted); }
inline Tensor Tensor::to(Device wanted) const {
  return wanted == device() ? *this : Tensor(backplane::to_device(plain_, wanted));
}
inline Tensor Tensor::to(const TensorOptions& options) const {
  const Tensor moved = options.place ? to(*options.place) : *this;
  return options.type ? moved.to(options.type->dtype) : moved;
}

inline void Tensor::backward(const Tensor& cotangent, bool retain_graph, bool create_graph) const {
  backplane::backward({&plain_, 1}, {&cotangent.plain_, 1}, {retain_graph || create_graph, create_graph});
}

inline Tensor Tensor::detach() const {
  return backplane::is_transformed(plain_) ? stop_gradient() : Tensor(backplane::detach(plain_));
}

template <class F>
uint64_t Tensor::register_hook(F hook) const {
  return backplane::add_hook(plain_, [hook](const backplane::Tensor& cotangent) -> backplane::Tensor {
    if constexpr (std::is_void_v<std::invoke_result_t<F, const Tensor&>>) {
      hook(Tensor(cotangent));
      return {};
    } else {
      return Tensor(hook(Tensor(cotangent))).plain();
    }
  });
}

// ---- iteration

class Tensor::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Tensor;
  using difference_type = std::ptrdiff_t;
  using pointer = const Tensor*;
  using reference = Tensor;

  Iterator() = default;
  Iterator(Tensor whole, int64_t row) : whole_(std::move(whole)), row_(row) {}
  Tensor operator*() const { return whole_.select(0, row_); }
  Iterator& operator++() {
    ++row_;
    return *this;
  }
  Iterator operator++(int) {
    Iterator before = *this;
    ++row_;
    return before;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.row_ == b.row_; }

 private:
  Tensor whole_;
  int64_t row_ = 0;
};

inline Tensor::Iterator Tensor::begin() const {
  BP_CHECK(dim() > 0, SHAPE, "iteration: found a tensor without axes, expected at least one axis");
  return {*this, 0};
}
inline Tensor::Iterator Tensor::end() const { return {*this, size(0)}; }

// ---- in place

inline Tensor& Tensor::operator+=(Operand y) { return add_(y), *this; }
inline Tensor& Tensor::operator-=(Operand y) { return subtract_(y), *this; }
inline Tensor& Tensor::operator*=(Operand y) { return multiply_(y), *this; }
inline Tensor& Tensor::operator/=(Operand y) { return divide_(y), *this; }
inline Tensor& Tensor::operator%=(Operand y) { return remainder_(y), *this; }
inline Tensor& Tensor::operator&=(Operand y) { return bitwise_and_(y), *this; }
inline Tensor& Tensor::operator|=(Operand y) { return bitwise_or_(y), *this; }
inline Tensor& Tensor::operator^=(Operand y) { return bitwise_xor_(y), *this; }

// ---- shapes

inline Tensor Tensor::flatten(int64_t first, int64_t last) const {
  if (dim() == 0) return reshape(1);
  first = detail::checked_axis("flatten", first, dim());
  last = detail::checked_axis("flatten", last, dim());
  BP_CHECK(first <= last, VALUE, "flatten: found the first axis ", first, " behind the last axis ", last);
  std::vector<int64_t> shape;
  int64_t joined = 1;
  for (int64_t axis = 0; axis < dim(); ++axis) {
    if (axis >= first && axis <= last) joined *= size(axis);
    if (axis < first || axis > last) shape.push_back(size(axis));
    if (axis == last) shape.push_back(joined);
  }
  return reshape(shape);
}

inline Tensor Tensor::transpose(int64_t axis1, int64_t axis2) const {
  std::vector<int64_t> axes(static_cast<size_t>(dim()));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  std::swap(axes[static_cast<size_t>(detail::checked_axis("transpose", axis1, dim()))],
            axes[static_cast<size_t>(detail::checked_axis("transpose", axis2, dim()))]);
  return permute_dims(axes);
}

inline Tensor Tensor::t() const {
  BP_CHECK(dim() <= 2, SHAPE, "t: found ", dim(), " axes, expected at most 2. Fix: transpose(axis1, axis2)");
  return dim() < 2 ? *this : transpose(0, 1);
}

inline Tensor Tensor::squeeze() const {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < dim(); ++axis)
    if (size(axis) == 1) axes.push_back(axis);
  return TensorMethods::squeeze(axes);
}
inline Tensor Tensor::squeeze(IntList axes) const { return TensorMethods::squeeze(axes); }

inline Tensor Tensor::expand(IntList wanted) const {
  std::vector<int64_t> sizes(wanted.span().begin(), wanted.span().end());
  const int64_t added = static_cast<int64_t>(sizes.size()) - dim();
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i) - added;
    if (sizes[i] == -1 && axis >= 0) sizes[i] = size(axis);
  }
  return broadcast_to(sizes);
}

inline Tensor Tensor::repeat(IntList repetitions) const {
  BP_CHECK(static_cast<int64_t>(repetitions.span().size()) >= dim(), SHAPE, "repeat: found ", repetitions.span().size(),
           " repetitions, expected at least one per axis of ", dim());
  return tile(repetitions);
}

inline Tensor Tensor::narrow(int64_t axis, int64_t start, int64_t length) const {
  axis = detail::checked_axis("narrow", axis, dim());
  if (start < 0) start += size(axis);
  BP_CHECK(start >= 0 && length >= 0 && start + length <= size(axis), INDEX, "narrow: found the elements ", start,
           " to ", start + length, " of axis ", axis, ", which has ", size(axis));
  return slice({axis}, {start}, {start + length}, {1});
}

inline std::vector<Tensor> Tensor::split(int64_t length, int64_t axis) const {
  BP_CHECK(length > 0, VALUE, "split: found the size ", length, ", expected at least 1");
  std::vector<Tensor> parts;
  const int64_t whole = size(axis);
  for (int64_t start = 0; start == 0 || start < whole; start += length)
    parts.push_back(narrow(axis, start, std::min(length, whole - start)));
  return parts;
}

inline std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t axis) const {
  BP_CHECK(chunks > 0, VALUE, "chunk: found ", chunks, " chunks, expected at least 1");
  return split(std::max<int64_t>(1, (size(axis) + chunks - 1) / chunks), axis);
}

inline std::vector<Tensor> Tensor::unbind(int64_t axis) const {
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < size(axis); ++i) parts.push_back(select(axis, i));
  return parts;
}

inline Tensor Tensor::gather(int64_t axis, const Tensor& indices) const {
  axis = detail::checked_axis("gather", axis, dim());
  BP_CHECK(indices.dim() == dim(), SHAPE, "gather: found indices of ", indices.dim(), " axes, expected ", dim());
  Tensor whole = *this;  // along the other axes, indices may be shorter than this
  for (int64_t i = 0; i < dim(); ++i) {
    if (i == axis) continue;
    BP_CHECK(indices.size(i) <= size(i), SHAPE, "gather: found indices of size ", indices.size(i), " along axis ", i,
             ", expected at most ", size(i));
    if (indices.size(i) < size(i)) whole = whole.narrow(i, 0, indices.size(i));
  }
  return whole.take_along_axis(indices, axis);
}

inline bool Tensor::equals(const Tensor& other) const {
  return sizes() == other.sizes() && equal(other).all().item<bool>();
}

inline bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return isclose(other, rtol, atol, equal_nan).all().item<bool>();
}

}  // namespace bp
