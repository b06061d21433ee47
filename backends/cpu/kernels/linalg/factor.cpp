// cholesky, and what follows from an LU factorisation with partial pivots: solve, inv, det, slogdet; solve_triangular.
//
// Row-major matrices are transposes to LAPACK: a determinant and an inverse do not mind, and triangular solves run by
// rows, so nothing is transposed here.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/linalg/matrix_batch.hpp"

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
        // The transpose's factor: LAPACK's upper one of the conjugate is L by rows.
        require(frame, lapack::potrf(upper ? 'L' : 'U', static_cast<Int>(n), a) == 0, x, i,
                "is not positive definite, as was expected");
        for (int64_t row = 0; row < n; ++row)
          std::fill_n(a + row * n + (upper ? 0 : row + 1), upper ? row : n - row - 1, T(0));
      }
    });
  }
};

// The LU factors of x's matrix i, as a transpose, in `a`. False where it is singular.
template <class T>
bool factor(const MatrixBatch& x, int64_t i, T* a, Int* pivots) {
  std::memcpy(a, x.at<T>(i), static_cast<size_t>(x.size()) * sizeof(T));
  return lapack::getrf(static_cast<Int>(x.rows), a, pivots) == 0;
}

// b (n x cols) = inverse of A times b, for A's factors: A = transpose of P L U = U' L' P'.
template <class T>
void solve_factored(int64_t n, int64_t cols, const T* a, const Int* pivots, T* b) {
  solve_rows(CblasLower, CblasNonUnit, n, cols, a, b);
  solve_rows(CblasUpper, CblasUnit, n, cols, a, b);
  for (int64_t row = n - 1; row >= 0; --row)
    if (pivots[row] != row + 1) std::swap_ranges(b + row * cols, b + (row + 1) * cols, b + (pivots[row] - 1) * cols);
}

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
      const Scratch<T> a(n * n);
      std::vector<Int> pivots(static_cast<size_t>(n));
      int64_t factored = -1;  // a matrix that several right sides share is factored once
      for (int64_t i = begin; i < end; ++i) {
        const int64_t matrix = b.matrix_of(x, i);
        if (matrix != factored) require(frame, factor(x, matrix, a.get(), pivots.data()), x, matrix, kSingular);
        factored = matrix;
        if (b.cols > 0) solve_factored(n, b.cols, a.get(), pivots.data(), b.load<T>(i));
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
        solve_rows(upper ? CblasUpper : CblasLower, unit ? CblasUnit : CblasNonUnit, n, b.cols, a, b.load<T>(i));
      }
    });
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
        require(frame, inverter.factor(a), x, i, kSingular);
        inverter.invert(a);
      }
    });
  }
};

// The product of the diagonal's signs (phases) with that of the row exchanges, and the sum of its logarithms.
template <class T>
void sign_and_log(int64_t n, const T* a, const Int* pivots, T& sign, lapack::Real<T>& log) {
  sign = 1;
  log = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T d = a[i * n + i];
    const auto size = std::abs(d);
    if (size == 0)
      sign = 0, log = -INFINITY;
    else
      sign *= d / size, log += std::log(size);
    if (pivots[i] != i + 1) sign = -sign;
    if (size == 0) return;
  }
}

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
      const Scratch<T> a(n * n);
      std::vector<Int> pivots(static_cast<size_t>(n));
      for (int64_t i = begin; i < end; ++i) {
        if (n > 0) factor(x, i, a.get(), pivots.data());  // of a singular matrix, a factor has 0 on its diagonal
        T value = 1;
        R log = 0;
        if constexpr (Log)
          sign_and_log(n, a.get(), pivots.data(), value, log);
        else
          for (int64_t d = 0; d < n; ++d)
            value *= pivots[static_cast<size_t>(d)] == d + 1 ? a.get()[d * n + d] : -a.get()[d * n + d];
        if (first != nullptr) first[i] = value;
        if (logs != nullptr) logs[i] = log;
      }
    });
  }
};

}  // namespace

const Family kFactor([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::cholesky", "cpu", lapack_kernel<Cholesky>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::solve", "cpu", lapack_kernel<Solve>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::solve_triangular", "cpu", lapack_kernel<SolveTriangular>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::inv", "cpu", lapack_kernel<Inverse>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::det", "cpu", lapack_kernel<Determinant<false>>, .dtypes = kLapackTypes));
  registrar.kernel(BP_KERNEL("bp::slogdet", "cpu", lapack_kernel<Determinant<true>>, .dtypes = kLapackTypes));
});

}  // namespace backplane::cpu
