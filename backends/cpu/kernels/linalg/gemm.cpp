// See gemm.hpp. Sizes beyond 2^31 - 1, which CBLAS's int cannot say, are refused.
#include "kernels/linalg/gemm.hpp"

#include <cblas.h>

#include <algorithm>
#include <climits>
#include <complex>
#include <memory>

#include "kernels/linalg/dnn_sgemm.hpp"
#include "kernels/linalg/int_gemm.hpp"
#include "kernels/linalg/small_gemm.hpp"
#include "loops/cast_row.hpp"
#include "loops/elementwise.hpp"
#include "runtime/library_call.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

CBLAS_TRANSPOSE transpose_of(const BlasOperand& operand) { return operand.transposed ? CblasTrans : CblasNoTrans; }

// y = A x for a column or a row of C: OpenBLAS's product of matrices packs its operands first, which costs more than
// the product itself where one side is a vector. k > 0, as gemv leaves y alone otherwise.
void gemv_blas(bp_dtype dtype, const Matrix& a, const char* x, int64_t x_stride, char* y, int64_t y_stride,
               bool accumulate) {
  const BlasOperand left = blas_operand(a);
  const CBLAS_TRANSPOSE transpose = transpose_of(left);
  const bool by_rows = !left.transposed;
  const auto leading = static_cast<blasint>(left.leading);
  const auto rows = static_cast<blasint>(by_rows ? a.rows : a.cols),
             cols = static_cast<blasint>(by_rows ? a.cols : a.rows);
  const auto step_x = static_cast<blasint>(std::max<int64_t>(x_stride, 1)),
             step_y = static_cast<blasint>(std::max<int64_t>(y_stride, 1));
  if (dtype == BP_FLOAT32)
    cblas_sgemv(CblasRowMajor, transpose, rows, cols, 1.0f, reinterpret_cast<const float*>(a.data), leading,
                reinterpret_cast<const float*>(x), step_x, accumulate ? 1.0f : 0.0f, reinterpret_cast<float*>(y),
                step_y);
  else
    cblas_dgemv(CblasRowMajor, transpose, rows, cols, 1.0, reinterpret_cast<const double*>(a.data), leading,
                reinterpret_cast<const double*>(x), step_x, accumulate ? 1.0 : 0.0, reinterpret_cast<double*>(y),
                step_y);
}
Matrix transposed(const Matrix& m) { return {m.data, m.cols, m.rows, m.col_stride, m.row_stride}; }

void gemm_blas(bp_dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c, bool accumulate) {
  BP_CHECK(std::max({c.rows, c.cols, a.cols, a.row_stride, a.col_stride, b.row_stride, b.col_stride, c.row_stride}) <=
               INT_MAX,
           VALUE, "matmul: a size exceeds 2^31 - 1, which BLAS cannot address");
  const LibraryCall call;
  if (a.cols > 0 && (dtype == BP_FLOAT32 || dtype == BP_FLOAT64)) {
    if (c.cols == 1) return gemv_blas(dtype, a, b.data, b.row_stride, c.data, c.row_stride, accumulate);
    if (c.rows == 1) return gemv_blas(dtype, transposed(b), a.data, a.col_stride, c.data, c.col_stride, accumulate);
  }
  if (dtype == BP_FLOAT32 && a.cols > 0 && dnn_sgemm(a, b, c, accumulate)) return;
  const auto m = static_cast<blasint>(c.rows), n = static_cast<blasint>(c.cols), k = static_cast<blasint>(a.cols);
  const BlasOperand x = blas_operand(a), y = blas_operand(b);
  const auto lda = static_cast<blasint>(x.leading), ldb = static_cast<blasint>(y.leading),
             ldc = static_cast<blasint>(leading_of_rows(c));
  const CBLAS_TRANSPOSE of_a = transpose_of(x), of_b = transpose_of(y);
  switch (dtype) {
    case BP_FLOAT32:
      return cblas_sgemm(CblasRowMajor, of_a, of_b, m, n, k, 1.0f, reinterpret_cast<float*>(a.data), lda,
                         reinterpret_cast<float*>(b.data), ldb, accumulate ? 1.0f : 0.0f,
                         reinterpret_cast<float*>(c.data), ldc);
    case BP_FLOAT64:
      return cblas_dgemm(CblasRowMajor, of_a, of_b, m, n, k, 1.0, reinterpret_cast<double*>(a.data), lda,
                         reinterpret_cast<double*>(b.data), ldb, accumulate ? 1.0 : 0.0,
                         reinterpret_cast<double*>(c.data), ldc);
    case BP_COMPLEX64: {
      const std::complex<float> one = 1, beta = accumulate ? 1 : 0;
      return cblas_cgemm(CblasRowMajor, of_a, of_b, m, n, k, &one, a.data, lda, b.data, ldb, &beta, c.data, ldc);
    }
    default: {
      const std::complex<double> one = 1, beta = accumulate ? 1 : 0;
      return cblas_zgemm(CblasRowMajor, of_a, of_b, m, n, k, &one, a.data, lda, b.data, ldb, &beta, c.data, ldc);
    }
  }
}

// A matrix as T, by rows: where it lies, or converted into `storage`.
template <class T>
T* dense_as(bp_dtype dtype, const Matrix& m, bp_dtype as, std::unique_ptr<Scratch<T>>& storage, bool filled = true) {
  const int64_t item = plugin::kItemSize[dtype];
  if (item == sizeof(T) && (m.col_stride == 1 || m.cols == 1) && (m.row_stride == m.cols || m.rows == 1))
    return reinterpret_cast<T*>(m.data);
  storage = std::make_unique<Scratch<T>>(m.rows * m.cols);
  if (filled && m.cols == 1) {
    cast_row(dtype, m.data, m.row_stride * item, as, reinterpret_cast<char*>(storage->get()), sizeof(T), m.rows);
    return storage->get();
  }
  for (int64_t i = 0; filled && i < m.rows; ++i)
    cast_row(dtype, m.data + i * m.row_stride * item, m.col_stride * item, as,
             reinterpret_cast<char*>(storage->get() + i * m.cols), sizeof(T), m.cols);
  return storage->get();
}
void write_back(bp_dtype from, const char* source, bp_dtype dtype, const Matrix& c) {
  const int64_t item = plugin::kItemSize[dtype], step = plugin::kItemSize[from];
  for (int64_t i = 0; i < c.rows; ++i)
    cast_row(from, source + i * c.cols * step, step, dtype, c.data + i * c.row_stride * item, c.col_stride * item,
             c.cols);
}

// Narrow integers become 32 bits wide, whose low bits are theirs.
template <class T>
void gemm_integers(bp_dtype dtype, bp_dtype wide, const Matrix& a, const Matrix& b, const Matrix& c, bool accumulate) {
  std::unique_ptr<Scratch<T>> left, right, result;
  const T *x = dense_as<T>(dtype, a, wide, left), *y = dense_as<T>(dtype, b, wide, right);
  T* z = dense_as<T>(dtype, c, wide, result, accumulate);
  int_gemm(x, y, z, c.rows, c.cols, a.cols, accumulate);
  if (result != nullptr) write_back(wide, reinterpret_cast<const char*>(z), dtype, c);
}

// Half floats: operands become float32 once, and OpenBLAS does the work. Of a product with a vector, a block of rows at
// a time, which stays in the cache.
void gemm_half(bp_dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c, bool accumulate) {
  const int64_t rows = std::max<int64_t>(16384 / std::max<int64_t>(a.cols, 1), 1);
  if (c.cols == 1 && c.rows > rows) {
    for (int64_t row = 0; row < c.rows; row += rows) {
      Matrix some = a, out = c;
      some.rows = out.rows = std::min(rows, c.rows - row);
      some.data += row * a.row_stride * 2;
      out.data += row * c.row_stride * 2;
      gemm_half(dtype, some, b, out, accumulate);
    }
    return;
  }
  std::unique_ptr<Scratch<float>> left, right, result;
  const auto widened = [&](const Matrix& m, auto& storage, bool filled) {
    if (m.row_stride == 1 && m.col_stride != 1) {  // by its columns, which lie in one piece
      const Matrix turned{m.data, m.cols, m.rows, m.col_stride, 1};
      float* by_columns = dense_as<float>(dtype, turned, BP_FLOAT32, storage, filled);
      return Matrix{reinterpret_cast<char*>(by_columns), m.rows, m.cols, 1, m.rows};
    }
    return Matrix{reinterpret_cast<char*>(dense_as<float>(dtype, m, BP_FLOAT32, storage, filled)), m.rows, m.cols,
                  m.cols, 1};
  };
  const Matrix z = widened(c, result, accumulate);
  gemm(BP_FLOAT32, widened(a, left, true), widened(b, right, true), z, accumulate);
  write_back(BP_FLOAT32, z.data, dtype, c);
}

}  // namespace

bool fits_blas(const Matrix& m) {
  const bool by_rows =
      (m.col_stride == 1 || m.cols == 1) && (m.rows == 1 || m.row_stride >= std::max<int64_t>(m.cols, 1));
  const bool by_columns =
      (m.row_stride == 1 || m.rows == 1) && (m.cols == 1 || m.col_stride >= std::max<int64_t>(m.rows, 1));
  return by_rows || by_columns;
}

BlasOperand blas_operand(const Matrix& m) {
  if (m.col_stride == 1 || m.cols == 1) return {false, leading_of_rows(m)};
  return {true, std::max<int64_t>({m.col_stride, m.rows, 1})};
}

int64_t leading_of_rows(const Matrix& m) { return std::max<int64_t>({m.rows > 1 ? m.row_stride : 1, m.cols, 1}); }

bool is_blas_type(bp_dtype dtype) { return dtype >= BP_FLOAT32 && dtype <= BP_COMPLEX128; }

void gemm(bp_dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c, bool accumulate) {
  if (!accumulate && small_gemm(dtype, a, b, c)) return;
  if (is_blas_type(dtype)) return gemm_blas(dtype, a, b, c, accumulate);
  if (dtype == BP_FLOAT16 || dtype == BP_BFLOAT16) return gemm_half(dtype, a, b, c, accumulate);
  if (plugin::kItemSize[dtype] == 8) return gemm_integers<uint64_t>(dtype, BP_UINT64, a, b, c, accumulate);
  gemm_integers<uint32_t>(dtype, BP_UINT32, a, b, c, accumulate);
}

}  // namespace backplane::cpu
