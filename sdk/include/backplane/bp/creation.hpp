// tensor({{1, 2}, {3, 4}}), randn, from_blob and the other ways to make a tensor of numbers of the program.
#pragma once

#include "backplane/bp/members.hpp"

namespace bp {

namespace detail {

// The braces of tensor({{1, 2}, {3, 4}}): a number, or rows of one shape. Its dtype is bool, int64 or float32, as the
// numbers are bools, integers or floats.
class NestedNumbers {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> NestedNumbers(T number)
      : kind_(kind_of<T>()), numbers_{static_cast<double>(number)} {
    if constexpr (std::is_integral_v<T>) integers_ = {static_cast<int64_t>(number)};
    if constexpr (!std::is_integral_v<T>) integers_ = {0};
  }
  NestedNumbers(std::initializer_list<NestedNumbers> rows) : kind_(rows.size() ? kBools : kFloats) {
    shape_.push_back(static_cast<int64_t>(rows.size()));
    for (const NestedNumbers& row : rows) {
      BP_CHECK(row.shape_ == rows.begin()->shape_, SHAPE,
               "tensor: found rows of different lengths, expected one length per axis");
      kind_ = std::max(kind_, row.kind_);
      numbers_.insert(numbers_.end(), row.numbers_.begin(), row.numbers_.end());
      integers_.insert(integers_.end(), row.integers_.begin(), row.integers_.end());
    }
    if (rows.size()) shape_.insert(shape_.end(), rows.begin()->shape_.begin(), rows.begin()->shape_.end());
  }

  // Integers pass as int64, exactly, and as float64 beside floats.
  Tensor made() const {
    if (kind_ == kFloats) return backplane::from_host(numbers_.data(), shape_, {}, kFloat64, Device("cpu"));
    return backplane::from_host(integers_.data(), shape_, {}, kInt64, Device("cpu"));
  }
  bp_dtype dtype() const { return kind_ == kBools ? kBool : kind_ == kIntegers ? kInt64 : kFloat32; }

 private:
  enum Kind { kBools, kIntegers, kFloats };
  template <class T>
  static constexpr Kind kind_of() {
    return std::is_same_v<T, bool> ? kBools : std::is_integral_v<T> ? kIntegers : kFloats;
  }

  Kind kind_;
  std::vector<int64_t> shape_;
  std::vector<double> numbers_;
  std::vector<int64_t> integers_;
};

inline Tensor finished(Tensor made, const TensorOptions& options) {
  if (options.type) made = made.to(options.type->dtype);
  made = made.to(options.place ? *options.place : Device(backplane::default_device()));
  if (options.grad) made.requires_grad_();
  return made;
}

}  // namespace detail

// A tensor of numbers in braces: tensor({1.5, 2.0}), tensor({{1, 2}, {3, 4}}), tensor({{1, 2}}, kFloat32).
inline Tensor tensor(std::initializer_list<detail::NestedNumbers> rows, const TensorOptions& options = {}) {
  const detail::NestedNumbers numbers(rows);
  return detail::finished(numbers.made(), options.type ? options : options.dtype(numbers.dtype()));
}
// A tensor without axes.
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(T number, const TensorOptions& options = {}) {
  const detail::NestedNumbers numbers(number);
  return detail::finished(numbers.made(), options.type ? options : options.dtype(numbers.dtype()));
}
// A copy of the numbers, of the dtype of T.
template <class T>
requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)  //
    Tensor tensor(const std::vector<T>& numbers, const TensorOptions& options = {}) {
  const auto count = static_cast<int64_t>(numbers.size());
  return detail::finished(Tensor(backplane::from_host(numbers.data(), {&count, 1}, {}, dtype_of<T>(), Device("cpu"))),
                          options);
}

// A copy of `shape` elements of host memory, row-major. T is the type of the elements.
template <class T>
requires std::is_arithmetic_v<T> Tensor from_blob(const T* data, IntList shape, const TensorOptions& options = {}) {
  return detail::finished(Tensor(backplane::from_host(data, shape.span(), {}, dtype_of<T>(), Device("cpu"))), options);
}

// Uniform numbers in [0, 1), or normal ones of mean 0 and deviation 1.
inline Tensor rand(IntList shape, const TensorOptions& options = {}, Generator& generator = default_generator()) {
  return detail::finished(uniform(shape, 0, 1, options.type, options.place, generator), options);
}
inline Tensor randn(IntList shape, const TensorOptions& options = {}, Generator& generator = default_generator()) {
  return detail::finished(normal(shape, 0, 1, options.type, options.place, generator), options);
}
inline Tensor rand_like(const Tensor& x, Generator& generator = default_generator()) {
  return uniform(x.sizes(), 0, 1, Dtype(x.dtype()), x.device(), generator);
}
inline Tensor randn_like(const Tensor& x, Generator& generator = default_generator()) {
  return normal(x.sizes(), 0, 1, Dtype(x.dtype()), x.device(), generator);
}
// Integers in [low, high), or in [0, high).
inline Tensor randint(int64_t high, IntList shape, const TensorOptions& options = {},
                      Generator& generator = default_generator()) {
  return detail::finished(randint(Scalar(0), Scalar(high), shape, options.type, options.place, generator), options);
}
inline Tensor randperm(int64_t n, const TensorOptions& options = {}, Generator& generator = default_generator()) {
  return detail::finished(permutation(n, options.place, generator), options);
}

// The creation ops with TensorOptions: zeros({2, 3}, dtype(kFloat64).requires_grad()).
template <std::same_as<TensorOptions> O>
Tensor zeros(IntList shape, const O& options) {
  return detail::finished(zeros(shape, options.type, options.place), options);
}
template <std::same_as<TensorOptions> O>
Tensor ones(IntList shape, const O& options) {
  return detail::finished(ones(shape, options.type, options.place), options);
}
template <std::same_as<TensorOptions> O>
Tensor full(IntList shape, Scalar value, const O& options) {
  return detail::finished(full(shape, value, options.type, options.place), options);
}
template <std::same_as<TensorOptions> O>
Tensor arange(Scalar start, Scalar stop, Scalar step, const O& options) {
  return detail::finished(arange(start, stop, step, options.type, options.place), options);
}
// The elements are not set.
inline Tensor empty(IntList shape, const TensorOptions& options = {}) {
  const Device place = options.place ? *options.place : Device(backplane::default_device());
  return detail::finished(Tensor(backplane::empty(shape.span(), options.type ? options.type->dtype : kFloat32, place)),
                          options);
}
inline Tensor empty_like(const Tensor& x) { return Tensor(backplane::empty(x.plain().shape(), x.dtype(), x.device())); }

}  // namespace bp
