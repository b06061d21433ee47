// LU factors of a matrix by elimination with pivots from the whole rest, of rows and columns scaled by powers of two:
// for matrices whose factors by LAPACK, their determinant or their inverse leave the range of normal numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/linalg/matrix_batch.hpp"

namespace backplane::cpu {

template <class T>
auto size_of(T value) {
  if constexpr (plugin::kIsComplex<T>)
    return std::max(std::abs(value.real()), std::abs(value.imag()));
  else
    return std::abs(value);
}
template <class T>
T times_power(T value, int exponent) {
  if constexpr (plugin::kIsComplex<T>)
    return {std::ldexp(value.real(), exponent), std::ldexp(value.imag(), exponent)};
  else
    return std::ldexp(value, exponent);
}
template <class T>
bool is_finite(T value) {
  return std::isfinite(size_of(value));
}
template <class T>
bool has_all_digits(T value) {
  if constexpr (plugin::kIsComplex<T>)
    return has_all_digits(value.real()) && has_all_digits(value.imag());
  else
    return value == 0 || std::isnormal(value);
}
constexpr int kNoExponent = std::numeric_limits<int>::min() / 2;
template <class T>
int exponent_of(T value) {
  int exponent = kNoExponent;
  if (value != T(0) && is_finite(value)) std::frexp(size_of(value), &exponent);
  return exponent;
}

// The factors of a matrix whose rows and columns are divided by powers of two, so that the largest of each is near 1,
// and exchanged: L below the diagonal, U on it and above.
template <class T>
class Eliminated {
 public:
  Eliminated(const T* x, int64_t n)
      : n_(n),
        a_(x, x + n * n),
        rows_(static_cast<size_t>(n)),
        cols_(static_cast<size_t>(n)),
        row_powers_(static_cast<size_t>(n), kNoExponent),
        col_powers_(static_cast<size_t>(n), kNoExponent) {
    scale();
    std::iota(rows_.begin(), rows_.end(), 0);
    std::iota(cols_.begin(), cols_.end(), 0);
    for (int64_t k = 0; k + 1 < n; ++k) {
      bring_largest(k);
      if (at(k, k) == T(0)) return;
      for (int64_t i = k + 1; i < n; ++i) {
        at(i, k) /= at(k, k);
        for (int64_t j = k + 1; j < n; ++j) at(i, j) -= at(i, k) * at(k, j);
      }
    }
  }

  bool is_singular() const {
    for (int64_t k = 0; k < n_; ++k)
      if (at(k, k) == T(0)) return true;
    return false;
  }
  // A number near 1 in size, or 0, and the power of two to multiply it by.
  std::pair<T, int> determinant() const { return product_of_pivots(n_); }

  // b = inverse of the matrix times b, of n x cols elements by rows. The matrix is regular.
  void solve_rows(int64_t cols, T* b) const {
    std::vector<T> column(static_cast<size_t>(n_));
    for (int64_t c = 0; c < cols; ++c) solve_column(cols, b + c, column.data());
  }

  // With the last pivot d and the product p of the others: sign p Q (d U^-1) L^-1 P, the powers of two put back.
  void store_adjugate(T* out) const {
    const auto [product, exponent] = product_of_pivots(n_ - 1);
    std::fill_n(out, n_ * n_, T(0));
    if (product == T(0)) return;
    std::vector<T> column(static_cast<size_t>(n_));
    for (int64_t k = 0; k < n_; ++k) {
      const int64_t row = rows_[static_cast<size_t>(k)];
      solve(k, column);
      for (int64_t i = 0; i < n_; ++i) {
        const int64_t col = cols_[static_cast<size_t>(i)];
        const int rest = exponent - row_powers_[static_cast<size_t>(row)] - col_powers_[static_cast<size_t>(col)];
        out[col * n_ + row] = times_power(product * column[static_cast<size_t>(i)], rest);
      }
    }
  }

 private:
  T& at(int64_t i, int64_t j) { return a_[static_cast<size_t>(i * n_ + j)]; }
  const T& at(int64_t i, int64_t j) const { return a_[static_cast<size_t>(i * n_ + j)]; }

  void scale() {
    const auto n = static_cast<size_t>(n_);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) row_powers_[i] = std::max(row_powers_[i], exponent_of(a_[i * n + j]));
      if (row_powers_[i] == kNoExponent) row_powers_[i] = 0;
    }
    for (size_t j = 0; j < n; ++j) {
      for (size_t i = 0; i < n; ++i)
        col_powers_[j] = std::max(col_powers_[j], exponent_of(a_[i * n + j]) - row_powers_[i]);
      if (col_powers_[j] < kNoExponent / 2) col_powers_[j] = 0;
    }
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) a_[i * n + j] = times_power(a_[i * n + j], -row_powers_[i] - col_powers_[j]);
  }

  // Of the first `count`, with the sign and the powers of two that scaling took out.
  std::pair<T, int> product_of_pivots(int64_t count) const {
    T product = sign_;
    int exponent = std::accumulate(row_powers_.begin(), row_powers_.end(), 0) +
                   std::accumulate(col_powers_.begin(), col_powers_.end(), 0);
    for (int64_t i = 0; i < count; ++i) {
      product *= at(i, i);
      const int power = exponent_of(product);
      if (power == kNoExponent) continue;
      product = times_power(product, -power);
      exponent += power;
    }
    return {product, exponent};
  }

  // The column's elements lie `step` apart; its own power of two is kept out, too.
  void solve_column(int64_t step, T* b, T* v) const {
    int most = kNoExponent;
    for (int64_t i = 0; i < n_; ++i)
      most = std::max(most, exponent_of(b[i * step]) - row_powers_[static_cast<size_t>(i)]);
    if (most < kNoExponent / 2) most = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const int64_t row = rows_[static_cast<size_t>(i)];
      v[i] = times_power(b[row * step], -row_powers_[static_cast<size_t>(row)] - most);
      for (int64_t j = 0; j < i; ++j) v[i] -= at(i, j) * v[j];
    }
    for (int64_t i = n_ - 1; i >= 0; --i) {
      for (int64_t j = i + 1; j < n_; ++j)
        if (at(i, j) != T(0)) v[i] -= at(i, j) * v[j];  // v[j] may be infinite
      v[i] /= at(i, i);
    }
    for (int64_t i = 0; i < n_; ++i) {
      const int64_t col = cols_[static_cast<size_t>(i)];
      b[col * step] = times_power(v[i], most - col_powers_[static_cast<size_t>(col)]);
    }
  }

  // Column k of d U^-1 L^-1: the last equation loses its pivot, which may be 0.
  void solve(int64_t k, std::vector<T>& column) const {
    T* v = column.data();
    for (int64_t i = 0; i < n_; ++i) {
      v[i] = i == k ? T(1) : T(0);
      for (int64_t j = k; j < i; ++j) v[i] -= at(i, j) * v[j];
    }
    const T last = at(n_ - 1, n_ - 1);
    for (int64_t i = n_ - 2; i >= 0; --i) {
      v[i] *= last;
      for (int64_t j = i + 1; j < n_; ++j) v[i] -= at(i, j) * v[j];
      v[i] /= at(i, i);
    }
  }

  void bring_largest(int64_t k) {
    int64_t row = k, col = k;
    for (int64_t i = k; i < n_; ++i)
      for (int64_t j = k; j < n_; ++j)
        if (std::abs(at(i, j)) > std::abs(at(row, col))) row = i, col = j;
    if (row != k) {
      for (int64_t j = 0; j < n_; ++j) std::swap(at(row, j), at(k, j));
      std::swap(rows_[static_cast<size_t>(row)], rows_[static_cast<size_t>(k)]);
      sign_ = -sign_;
    }
    if (col != k) {
      for (int64_t i = 0; i < n_; ++i) std::swap(at(i, col), at(i, k));
      std::swap(cols_[static_cast<size_t>(col)], cols_[static_cast<size_t>(k)]);
      sign_ = -sign_;
    }
  }

  int64_t n_;
  std::vector<T> a_;
  std::vector<int64_t> rows_, cols_;
  std::vector<int> row_powers_, col_powers_;
  T sign_ = 1;
};

}  // namespace backplane::cpu
