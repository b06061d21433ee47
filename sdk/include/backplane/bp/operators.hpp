// a + b, -a, a == b: each operand a tensor or a number. The products of matrices are matmul(a, b) and a.matmul(b).
#pragma once

#include "backplane/bp/ops.hpp"

namespace bp {

namespace detail {
using backplane::detail::Number;
}

inline Tensor operator+(const Tensor& x, const Tensor& y) { return add(x, y); }
template <detail::Number N>
Tensor operator+(const Tensor& x, N y) {
  return add(x, y);
}
template <detail::Number N>
Tensor operator+(N x, const Tensor& y) {
  return add(x, y);
}

inline Tensor operator-(const Tensor& x, const Tensor& y) { return subtract(x, y); }
template <detail::Number N>
Tensor operator-(const Tensor& x, N y) {
  return subtract(x, y);
}
template <detail::Number N>
Tensor operator-(N x, const Tensor& y) {
  return subtract(x, y);
}

inline Tensor operator*(const Tensor& x, const Tensor& y) { return multiply(x, y); }
template <detail::Number N>
Tensor operator*(const Tensor& x, N y) {
  return multiply(x, y);
}
template <detail::Number N>
Tensor operator*(N x, const Tensor& y) {
  return multiply(x, y);
}

inline Tensor operator/(const Tensor& x, const Tensor& y) { return divide(x, y); }
template <detail::Number N>
Tensor operator/(const Tensor& x, N y) {
  return divide(x, y);
}
template <detail::Number N>
Tensor operator/(N x, const Tensor& y) {
  return divide(x, y);
}

inline Tensor operator%(const Tensor& x, const Tensor& y) { return remainder(x, y); }
template <detail::Number N>
Tensor operator%(const Tensor& x, N y) {
  return remainder(x, y);
}
template <detail::Number N>
Tensor operator%(N x, const Tensor& y) {
  return remainder(x, y);
}

inline Tensor operator&(const Tensor& x, const Tensor& y) { return bitwise_and(x, y); }
template <detail::Number N>
Tensor operator&(const Tensor& x, N y) {
  return bitwise_and(x, y);
}
template <detail::Number N>
Tensor operator&(N x, const Tensor& y) {
  return bitwise_and(x, y);
}

inline Tensor operator|(const Tensor& x, const Tensor& y) { return bitwise_or(x, y); }
template <detail::Number N>
Tensor operator|(const Tensor& x, N y) {
  return bitwise_or(x, y);
}
template <detail::Number N>
Tensor operator|(N x, const Tensor& y) {
  return bitwise_or(x, y);
}

inline Tensor operator^(const Tensor& x, const Tensor& y) { return bitwise_xor(x, y); }
template <detail::Number N>
Tensor operator^(const Tensor& x, N y) {
  return bitwise_xor(x, y);
}
template <detail::Number N>
Tensor operator^(N x, const Tensor& y) {
  return bitwise_xor(x, y);
}

inline Tensor operator==(const Tensor& x, const Tensor& y) { return equal(x, y); }
template <detail::Number N>
Tensor operator==(const Tensor& x, N y) {
  return equal(x, y);
}
template <detail::Number N>
Tensor operator==(N x, const Tensor& y) {
  return equal(x, y);
}

inline Tensor operator!=(const Tensor& x, const Tensor& y) { return not_equal(x, y); }
template <detail::Number N>
Tensor operator!=(const Tensor& x, N y) {
  return not_equal(x, y);
}
template <detail::Number N>
Tensor operator!=(N x, const Tensor& y) {
  return not_equal(x, y);
}

inline Tensor operator<(const Tensor& x, const Tensor& y) { return less(x, y); }
template <detail::Number N>
Tensor operator<(const Tensor& x, N y) {
  return less(x, y);
}
template <detail::Number N>
Tensor operator<(N x, const Tensor& y) {
  return less(x, y);
}

inline Tensor operator<=(const Tensor& x, const Tensor& y) { return less_equal(x, y); }
template <detail::Number N>
Tensor operator<=(const Tensor& x, N y) {
  return less_equal(x, y);
}
template <detail::Number N>
Tensor operator<=(N x, const Tensor& y) {
  return less_equal(x, y);
}

inline Tensor operator>(const Tensor& x, const Tensor& y) { return greater(x, y); }
template <detail::Number N>
Tensor operator>(const Tensor& x, N y) {
  return greater(x, y);
}
template <detail::Number N>
Tensor operator>(N x, const Tensor& y) {
  return greater(x, y);
}

inline Tensor operator>=(const Tensor& x, const Tensor& y) { return greater_equal(x, y); }
template <detail::Number N>
Tensor operator>=(const Tensor& x, N y) {
  return greater_equal(x, y);
}
template <detail::Number N>
Tensor operator>=(N x, const Tensor& y) {
  return greater_equal(x, y);
}

inline Tensor operator-(const Tensor& x) { return negative(x); }
inline Tensor operator+(const Tensor& x) { return x; }
inline Tensor operator~(const Tensor& x) { return bitwise_invert(x); }
inline Tensor operator!(const Tensor& x) { return logical_not(x); }

// libtorch's other names.
inline Tensor sub(Operand x, Operand y) { return backplane::subtract(x, y); }
inline Tensor mul(Operand x, Operand y) { return backplane::multiply(x, y); }
inline Tensor div(Operand x, Operand y) { return backplane::divide(x, y); }
inline Tensor mm(const Tensor& x, const Tensor& y) { return matmul(x, y); }
inline Tensor bmm(const Tensor& x, const Tensor& y) { return matmul(x, y); }
inline Tensor cat(TensorList tensors, int64_t axis = 0) { return concat(tensors, axis); }
inline Tensor clamp(Operand x, Operand min = {}, Operand max = {}) { return backplane::clip(x, min, max); }
inline bool allclose(const Tensor& x, const Tensor& y, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) {
  return x.allclose(y, rtol, atol, equal_nan);
}

}  // namespace bp
