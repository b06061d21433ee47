// cholesky, and what follows from an LU factorisation with partial pivots: lu_factor, solve, inv, det, slogdet;
// solve_triangular.
//
// Row-major matrices are transposes to LAPACK: a determinant and an inverse do not mind, and triangular solves run by
// rows, so nothing is transposed here.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/linalg/eliminated.hpp"

namespace backplane::cpu {
namespace {

using lapack::Int;
constexpr const char* kSingular = "is singular; a regular one was expected";

// Row by row, for systems so small that a call of BLAS costs more.
template <class T>
void substitute(bool lower, bool unit, int64_t n, int64_t cols, const T* a, T* b) {
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = lower ? k : n - 1 - k;
    T* row = b + i * cols;
    for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : n); ++j)
      for (int64_t c = 0; c < cols; ++c) row[c] -= a[i * n + j] * b[j * cols + c];
    for (int64_t c = 0; c < cols && !unit; ++c) row[c] /= a[i * n + i];
  }
}

// B (rows x cols, by rows) = inverse of a triangular A times B.
template <class T>
void solve_rows(CBLAS_UPLO uplo, CBLAS_DIAG diag, int64_t n, int64_t cols, const T* a, T* b) {
  if (n <= 32 && cols <= 8) return substitute(uplo == CblasLower, diag == CblasUnit, n, cols, a, b);
  const auto size = static_cast<blasint>(n), width = static_cast<blasint>(cols);
  const T one = 1;
  const LibraryCall call;
  if constexpr (std::is_same_v<T, float>)
    cblas_strsm(CblasRowMajor, CblasLeft, uplo, CblasNoTrans, diag, size, width, 1, a, size, b, width);
  else if constexpr (std::is_same_v<T, double>)
    cblas_dtrsm(CblasRowMajor, CblasLeft, uplo, CblasNoTrans, diag, size, width, 1, a, size, b, width);
  else if constexpr (std::is_same_v<T, lapack::Complex64>)
    cblas_ctrsm(CblasRowMajor, CblasLeft, uplo, CblasNoTrans, diag, size, width, &one, a, size, b, width);
  else
    cblas_ztrsm(CblasRowMajor, CblasLeft, uplo, CblasNoTrans, diag, size, width, &one, a, size, b, width);
}

struct Cholesky {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    const MatrixBatch x(frame, plugin::as_tensor(args[0])), out(frame, outs[0].u.t);
    x.require_square(frame);
    const bool upper = plugin::as_bool(args[1]);
    const int64_t n = x.rows;
    for_matrices(frame, n == 0 ? 0 : x.count, n * n * n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* a = out.at<T>(i);
        hermitian_part(x.at<T>(i), a, n);
        // The transpose's factor: LAPACK's upper factor of the conjugate is L by rows.
        require(frame, lapack::potrf(upper ? 'L' : 'U', static_cast<Int>(n), a) == 0, x, i,
                "is not positive definite, as was expected");
        for (int64_t row = 0; row < n; ++row)
          std::fill_n(a + row * n + (upper ? 0 : row + 1), upper ? row : n - row - 1, T(0));
      }
    });
  }
};

// Does LAPACK divide by the number itself, and not by a reciprocal that overflows?
template <class T>
bool has_reciprocal(T value) {
  using R = lapack::Real<T>;
  return size_of(value) >= std::numeric_limits<R>::min() && size_of(value) <= std::numeric_limits<R>::max();
}

// Of the diagonal.
template <class T>
bool has_reciprocals(const T* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!has_reciprocal(a[i * n + i])) return false;
  return true;
}

// The LU factors of one matrix after another. For one thread at a time.
template <class T>
class Factors {
 public:
  explicit Factors(int64_t n) : n_(n), a_(n * n), pivots_(static_cast<size_t>(n)) {}

  // False where the matrix is singular.
  bool factor(const T* x) {
    scaled_.reset();
    if (n_ == 0) return true;
    std::memcpy(a_.get(), x, static_cast<size_t>(n_ * n_) * sizeof(T));
    const bool regular = lapack::getrf(static_cast<Int>(n_), a_.get(), pivots_.data()) == 0;
    if (is_reliable(x, regular)) return regular;
    scaled_.emplace(x, n_);
    return !scaled_->is_singular();
  }

  // b (n x cols) = inverse of A times b, for A's factors: A = transpose of P L U = U' L' P'.
  void solve(int64_t cols, T* b) const {
    if (scaled_) return scaled_->solve_rows(cols, b);
    solve_rows(CblasLower, CblasNonUnit, n_, cols, a_.get(), b);
    solve_rows(CblasUpper, CblasUnit, n_, cols, a_.get(), b);
    for (int64_t row = n_ - 1; row >= 0; --row) {
      const Int other = pivots_[static_cast<size_t>(row)] - 1;
      if (other != row) std::swap_ranges(b + row * cols, b + (row + 1) * cols, b + other * cols);
    }
  }

  // As a number times a power of two. Of a singular matrix a factor has 0 on its diagonal.
  std::pair<T, int> determinant() const {
    if (scaled_) return scaled_->determinant();
    T product = 1;
    int exponent = 0;
    for (int64_t d = 0; d < n_; ++d) {
      const T pivot = a_.get()[d * n_ + d], before = product;
      const T next = pivots_[static_cast<size_t>(d)] == d + 1 ? pivot : -pivot;
      product *= next;
      if (product != T(0) && has_all_digits(product)) continue;
      if (before == T(0) || next == T(0) || !is_finite(before) || !is_finite(next)) continue;
      const int power = exponent_of(before), own = exponent_of(next);
      product = times_power(before, -power) * times_power(next, -own);
      exponent += power + own;
    }
    return {product, exponent};
  }

  // The product of the diagonal's signs (phases) and the sign of the row exchanges, and the sum of the logarithms.
  void sign_and_log(T& sign, lapack::Real<T>& log) const {
    sign = 1;
    log = 0;
    if (scaled_) {
      const auto [product, exponent] = scaled_->determinant();
      add_factor(product, sign, log);
      if (product != T(0)) log += static_cast<lapack::Real<T>>(exponent * std::numbers::ln2);
      return;
    }
    for (int64_t i = 0; i < n_ && sign != T(0); ++i) {
      add_factor(a_.get()[i * n_ + i], sign, log);
      if (pivots_[static_cast<size_t>(i)] != i + 1) sign = -sign;
    }
  }

 private:
  // Pivots that are subnormal, 0 or infinite may come of underflow or overflow, where the matrix has numbers that large
  // or small.
  bool is_reliable(const T* x, bool regular) const {
    if ((regular && has_reciprocals(a_.get(), n_)) || !all_finite(x, n_ * n_)) return true;
    const auto least = std::sqrt(std::numeric_limits<lapack::Real<T>>::min());
    return std::all_of(x, x + n_ * n_,
                       [least](T v) { return v == T(0) || (size_of(v) > least && size_of(v) < 1 / least); });
  }

  static void add_factor(T value, T& sign, lapack::Real<T>& log) {
    const auto size = std::abs(value);
    if (size == 0)
      sign = 0, log = -INFINITY;
    else
      sign *= value / size, log += std::log(size);
  }

  int64_t n_;
  Scratch<T> a_;
  std::vector<Int> pivots_;
  std::optional<Eliminated<T>> scaled_;
};

// Where matrix `i` of the broadcast stack lies in a stack that broadcasts to it.
int64_t broadcast_index(const bp_tensor* x, const bp_tensor* whole, int32_t skipped, int64_t i) {
  int64_t found = 0, step = 1;
  for (int32_t d = whole->dl.ndim - 1 - skipped, own = x->dl.ndim - 3; d >= 0; --d, --own) {
    const int64_t at = i % whole->dl.shape[d];
    i /= whole->dl.shape[d];
    if (own < 0) continue;
    if (x->dl.shape[own] != 1) found += at * step;
    step *= x->dl.shape[own];
  }
  return found;
}

// The right side of a solve: a vector, or a stack of matrices.
struct RightSide {
  const bp_tensor *tensor, *out;
  bool vector;
  int64_t cols, size;

  RightSide(const bp_frame* frame, const MatrixBatch& a, const bp_tensor* b, const bp_tensor* result)
      : tensor(b), out(result), vector(b->dl.ndim == 1), cols(vector ? 1 : b->dl.shape[b->dl.ndim - 1]) {
    a.require_square(frame);
    const int64_t rows = b->dl.shape[vector ? 0 : b->dl.ndim - 2];
    BP_CHECK(rows == a.rows, SHAPE, frame->op->name, ": found ", a.rows, " x ", a.cols,
             " matrices and a right side of ", rows, " rows, expected as many");
    size = rows * cols;
  }
  int64_t count() const {
    int64_t n = 1;
    for (int32_t d = 0; d < out->dl.ndim - (vector ? 1 : 2); ++d) n *= out->dl.shape[d];
    return n;
  }
  int64_t matrix_of(const MatrixBatch& a, int64_t i) const { return broadcast_index(a.tensor, out, vector ? 1 : 2, i); }
  // Matrix i of the result, filled with the right side.
  template <class T>
  T* load(int64_t i) const {
    T* b = reinterpret_cast<T*>(data_of(out)) + i * size;
    const int64_t from = vector ? 0 : broadcast_index(tensor, out, 2, i);
    std::memcpy(b, reinterpret_cast<const T*>(data_of(tensor)) + from * size, static_cast<size_t>(size) * sizeof(T));
    return b;
  }
};

struct Solve {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    const MatrixBatch x(frame, plugin::as_tensor(args[0]));
    const RightSide b(frame, x, plugin::as_tensor(args[1]), outs[0].u.t);
    const int64_t n = x.rows;
    if (n == 0) return;
    for_matrices(frame, b.count(), n * n * (n + b.cols), [&](int64_t begin, int64_t end) {
      Factors<T> factors(n);
      int64_t factored = -1;  // a matrix that several right sides share is factored once
      for (int64_t i = begin; i < end; ++i) {
        const int64_t matrix = b.matrix_of(x, i);
        if (matrix != factored) require(frame, factors.factor(x.at<T>(matrix)), x, matrix, kSingular);
        factored = matrix;
        if (b.cols > 0) factors.solve(b.cols, b.load<T>(i));
      }
    });
  }
};

// solve_triangular(Tensor x1, Tensor x2, *, bool upper, bool unit_diagonal)
struct SolveTriangular {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    const MatrixBatch x(frame, plugin::as_tensor(args[0]));
    const RightSide b(frame, x, plugin::as_tensor(args[1]), outs[0].u.t);
    const bool upper = plugin::as_bool(args[2]), unit = plugin::as_bool(args[3]);
    const int64_t n = x.rows;
    if (n == 0 || b.cols == 0) return;
    for_matrices(frame, b.count(), n * n * b.cols, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t matrix = b.matrix_of(x, i);
        const T* a = x.at<T>(matrix);
        for (int64_t row = 0; row < n && !unit; ++row) require(frame, a[row * n + row] != T(0), x, matrix, kSingular);
        if (unit || has_reciprocals(a, n))
          solve_rows(upper ? CblasUpper : CblasLower, unit ? CblasUnit : CblasNonUnit, n, b.cols, a, b.load<T>(i));
        else
          substitute(!upper, unit, n, b.cols, a, b.load<T>(i));
      }
    });
  }
};

// lu_factor(Tensor x) -> (LU, pivots, permutation)
struct LuFactor {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    const MatrixBatch x(frame, plugin::as_tensor(args[0])), out(frame, outs[0].u.t);
    const int64_t m = x.rows, n = x.cols, k = std::min(m, n);
    auto* const pivots = reinterpret_cast<int32_t*>(data_of(outs[1].u.t));
    auto* const permutation = reinterpret_cast<int32_t*>(data_of(outs[2].u.t));
    for_matrices(frame, x.count, m * n * k, [&](int64_t begin, int64_t end) {
      Scratch<T> columns(m * n);
      std::vector<Int> exchanged(static_cast<size_t>(k));
      for (int64_t i = begin; i < end; ++i) {
        transpose(x.at<T>(i), columns.get(), m, n);
        if (k > 0) lapack::getrf(static_cast<Int>(m), static_cast<Int>(n), columns.get(), exchanged.data());
        transpose(columns.get(), out.at<T>(i), n, m);
        int32_t* const order = permutation + i * m;
        std::iota(order, order + m, 0);
        for (int64_t row = 0; row < k; ++row) {
          const Int other = exchanged[static_cast<size_t>(row)] - 1;
          pivots[i * k + row] = other;
          std::swap(order[row], order[other]);
        }
      }
    });
  }

  // rows x cols -> cols x rows, in blocks that stay in L1.
  template <class T>
  static void transpose(const T* from, T* to, int64_t rows, int64_t cols) {
    constexpr int64_t kBlock = 16;
    for (int64_t row = 0; row < rows; row += kBlock)
      for (int64_t col = 0; col < cols; col += kBlock)
        for (int64_t r = row; r < std::min(row + kBlock, rows); ++r)
          for (int64_t c = col; c < std::min(col + kBlock, cols); ++c) to[c * rows + r] = from[r * cols + c];
  }
};

struct Inverse {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    const MatrixBatch x(frame, plugin::as_tensor(args[0])), out(frame, outs[0].u.t);
    x.require_square(frame);
    if (x.rows == 0) return;
    for_matrices(frame, x.count, 2 * x.size() * x.rows, [&](int64_t begin, int64_t end) {
      Inverter<T> inverter(x.rows);
      for (int64_t i = begin; i < end; ++i) {
        T* const a = out.at<T>(i);
        std::memcpy(a, x.at<T>(i), static_cast<size_t>(x.size()) * sizeof(T));
        if (std::any_of(a, a + x.size(), [](T value) { return value != value; })) {
          std::fill_n(a, x.size(), T(std::numeric_limits<lapack::Real<T>>::quiet_NaN()));  // LAPACK may pass over a NaN
          continue;
        }
        if (inverter.factor(a) && has_reciprocals(a, x.rows)) {
          inverter.invert(a);
          continue;
        }
        Factors<T> factors(x.rows);
        require(frame, factors.factor(x.at<T>(i)), x, i, kSingular);
        std::fill_n(a, x.size(), T(0));
        for (int64_t d = 0; d < x.rows; ++d) a[d * x.rows + d] = T(1);
        factors.solve(x.rows, a);
      }
    });
  }
};

// det(Tensor x), and slogdet(Tensor x) -> (sign, logabsdet)
template <bool Log>
struct Determinant {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    using R = lapack::Real<T>;
    const MatrixBatch x(frame, plugin::as_tensor(args[0]));
    x.require_square(frame);
    const int64_t n = x.rows;
    T* first = outs[0].tag == BP_TAG_TENSOR ? reinterpret_cast<T*>(data_of(outs[0].u.t)) : nullptr;
    R* logs = Log && outs[1].tag == BP_TAG_TENSOR ? reinterpret_cast<R*>(data_of(outs[1].u.t)) : nullptr;
    for_matrices(frame, x.count, n * n * n, [&](int64_t begin, int64_t end) {
      Factors<T> factors(n);
      for (int64_t i = begin; i < end; ++i) {
        factors.factor(x.at<T>(i));
        T value = 1;
        R log = 0;
        if constexpr (Log) {
          factors.sign_and_log(value, log);
        } else {
          const auto [product, exponent] = factors.determinant();
          value = exponent == 0 ? product : times_power(product, exponent);
        }
        if (first != nullptr) first[i] = value;
        if (logs != nullptr) logs[i] = log;
      }
    });
  }
};

}  // namespace

const Family kFactor([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::cholesky", "cpu", lapack_kernel<Cholesky>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::lu_factor", "cpu", lapack_kernel<LuFactor>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::solve", "cpu", lapack_kernel<Solve>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::solve_triangular", "cpu", lapack_kernel<SolveTriangular>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::inv", "cpu", lapack_kernel<Inverse>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::det", "cpu", lapack_kernel<Determinant<false>>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::slogdet", "cpu", lapack_kernel<Determinant<true>>, .dtypes = kLapackTypes));
});

}  // namespace backplane::cpu
