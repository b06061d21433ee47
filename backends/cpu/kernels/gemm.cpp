// See gemm.hpp. Sizes beyond 2^31 - 1, which CBLAS's int cannot say, are refused.
#include "kernels/gemm.hpp"

#include <cblas.h>

#include <algorithm>
#include <climits>
#include <complex>
#include <vector>

#include "kernels/cast.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/small_gemm.hpp"

namespace backplane::cpu {
namespace {

struct BlasOperand {
  CBLAS_TRANSPOSE transpose;
  blasint leading;
};
BlasOperand operand(const Matrix& m) {
  if (m.col_stride == 1 || m.cols == 1)
    return {CblasNoTrans, static_cast<blasint>(std::max<int64_t>({m.rows > 1 ? m.row_stride : 1, m.cols, 1}))};
  return {CblasTrans, static_cast<blasint>(std::max<int64_t>({m.col_stride, m.rows, 1}))};
}

// y = A x for a column or a row of C: OpenBLAS's product of matrices packs its operands first, which costs more than
// the product itself where one side is a vector. k > 0, as gemv leaves y alone otherwise.
void gemv_blas(bp_dtype dtype, const Matrix& a, const char* x, int64_t x_stride, char* y, int64_t y_stride,
               bool accumulate) {
  const BlasOperand left = operand(a);
  const bool by_rows = left.transpose == CblasNoTrans;
  const auto rows = static_cast<blasint>(by_rows ? a.rows : a.cols),
             cols = static_cast<blasint>(by_rows ? a.cols : a.rows);
  const auto step_x = static_cast<blasint>(std::max<int64_t>(x_stride, 1)),
             step_y = static_cast<blasint>(std::max<int64_t>(y_stride, 1));
  if (dtype == BP_FLOAT32)
    cblas_sgemv(CblasRowMajor, left.transpose, rows, cols, 1.0f, reinterpret_cast<const float*>(a.data), left.leading,
                reinterpret_cast<const float*>(x), step_x, accumulate ? 1.0f : 0.0f, reinterpret_cast<float*>(y),
                step_y);
  else
    cblas_dgemv(CblasRowMajor, left.transpose, rows, cols, 1.0, reinterpret_cast<const double*>(a.data), left.leading,
                reinterpret_cast<const double*>(x), step_x, accumulate ? 1.0 : 0.0, reinterpret_cast<double*>(y),
                step_y);
}
Matrix transposed(const Matrix& m) { return {m.data, m.cols, m.rows, m.col_stride, m.row_stride}; }

void gemm_blas(bp_dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c, bool accumulate) {
  BP_CHECK(std::max({c.rows, c.cols, a.cols, a.row_stride, a.col_stride, b.row_stride, b.col_stride, c.row_stride}) <=
               INT_MAX,
           VALUE, "matmul: a size exceeds 2^31 - 1, which BLAS cannot address");
  if (a.cols > 0 && (dtype == BP_FLOAT32 || dtype == BP_FLOAT64)) {
    if (c.cols == 1) return gemv_blas(dtype, a, b.data, b.row_stride, c.data, c.row_stride, accumulate);
    if (c.rows == 1) return gemv_blas(dtype, transposed(b), a.data, a.col_stride, c.data, c.col_stride, accumulate);
  }
  const auto m = static_cast<blasint>(c.rows), n = static_cast<blasint>(c.cols), k = static_cast<blasint>(a.cols);
  const BlasOperand x = operand(a), y = operand(b);
  const auto ldc = static_cast<blasint>(std::max<int64_t>(c.rows > 1 ? c.row_stride : 1, std::max<int64_t>(c.cols, 1)));
  switch (dtype) {
    case BP_FLOAT32:
      return cblas_sgemm(CblasRowMajor, x.transpose, y.transpose, m, n, k, 1.0f, reinterpret_cast<float*>(a.data),
                         x.leading, reinterpret_cast<float*>(b.data), y.leading, accumulate ? 1.0f : 0.0f,
                         reinterpret_cast<float*>(c.data), ldc);
    case BP_FLOAT64:
      return cblas_dgemm(CblasRowMajor, x.transpose, y.transpose, m, n, k, 1.0, reinterpret_cast<double*>(a.data),
                         x.leading, reinterpret_cast<double*>(b.data), y.leading, accumulate ? 1.0 : 0.0,
                         reinterpret_cast<double*>(c.data), ldc);
    case BP_COMPLEX64: {
      const std::complex<float> one = 1, beta = accumulate ? 1 : 0;
      return cblas_cgemm(CblasRowMajor, x.transpose, y.transpose, m, n, k, &one, a.data, x.leading, b.data, y.leading,
                         &beta, c.data, ldc);
    }
    default: {
      const std::complex<double> one = 1, beta = accumulate ? 1 : 0;
      return cblas_zgemm(CblasRowMajor, x.transpose, y.transpose, m, n, k, &one, a.data, x.leading, b.data, y.leading,
                         &beta, c.data, ldc);
    }
  }
}

// Row by row: a row of C is the sum of the rows of B, each times an element of A, in an accumulator that stays in L1. T
// is the type of the elements in memory's dtype; Sum what they are converted to.
template <class Sum>
void gemm_rows(bp_dtype dtype, bp_dtype sum_dtype, const Matrix& a, const Matrix& b, const Matrix& c, bool accumulate) {
  constexpr int64_t kColumns = 512;
  const int64_t item = plugin::kItemSize[dtype];
  const int64_t width = std::min(c.cols, kColumns);
  std::vector<Sum> sums(static_cast<size_t>(width)), row(static_cast<size_t>(width)), left(static_cast<size_t>(a.cols));
  for (int64_t i = 0; i < c.rows; ++i) {
    cast_row(dtype, a.data + i * a.row_stride * item, a.col_stride * item, sum_dtype,
             reinterpret_cast<char*>(left.data()), sizeof(Sum), a.cols);
    for (int64_t first = 0; first < c.cols; first += width) {
      const int64_t n = std::min(width, c.cols - first);
      char* out = c.data + (i * c.row_stride + first * c.col_stride) * item;
      if (accumulate)
        cast_row(dtype, out, c.col_stride * item, sum_dtype, reinterpret_cast<char*>(sums.data()), sizeof(Sum), n);
      else
        std::fill_n(sums.begin(), n, Sum(0));
      for (int64_t k = 0; k < a.cols; ++k) {
        cast_row(dtype, b.data + (k * b.row_stride + first * b.col_stride) * item, b.col_stride * item, sum_dtype,
                 reinterpret_cast<char*>(row.data()), sizeof(Sum), n);
        const Sum factor = left[static_cast<size_t>(k)];
        for (int64_t j = 0; j < n; ++j) sums[static_cast<size_t>(j)] += factor * row[static_cast<size_t>(j)];
      }
      cast_row(sum_dtype, reinterpret_cast<char*>(sums.data()), sizeof(Sum), dtype, out, c.col_stride * item, n);
    }
  }
}

// Half floats: both operands become float32 once, and OpenBLAS does the work.
void gemm_half(bp_dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c, bool accumulate) {
  const auto widen = [&](const Matrix& m, std::vector<float>& storage) {
    storage.resize(static_cast<size_t>(m.rows * m.cols));
    for (int64_t i = 0; i < m.rows; ++i)
      cast_row(dtype, m.data + i * m.row_stride * 2, m.col_stride * 2, BP_FLOAT32,
               reinterpret_cast<char*>(storage.data() + i * m.cols), sizeof(float), m.cols);
    return Matrix{reinterpret_cast<char*>(storage.data()), m.rows, m.cols, m.cols, 1};
  };
  std::vector<float> left, right, result;
  const Matrix x = widen(a, left), y = widen(b, right);
  Matrix z{nullptr, c.rows, c.cols, c.cols, 1};
  if (accumulate)
    z = widen(c, result);
  else
    result.resize(static_cast<size_t>(c.rows * c.cols));
  z.data = reinterpret_cast<char*>(result.data());
  gemm_blas(BP_FLOAT32, x, y, z, accumulate);
  for (int64_t i = 0; i < c.rows; ++i)
    cast_row(BP_FLOAT32, z.data + i * c.cols * 4, sizeof(float), dtype, c.data + i * c.row_stride * 2, c.col_stride * 2,
             c.cols);
}

}  // namespace

bool fits_blas(const Matrix& m) {
  const bool by_rows =
      (m.col_stride == 1 || m.cols == 1) && (m.rows == 1 || m.row_stride >= std::max<int64_t>(m.cols, 1));
  const bool by_columns =
      (m.row_stride == 1 || m.rows == 1) && (m.cols == 1 || m.col_stride >= std::max<int64_t>(m.rows, 1));
  return by_rows || by_columns;
}

bool is_blas_type(bp_dtype dtype) { return dtype >= BP_FLOAT32 && dtype <= BP_COMPLEX128; }

void keep_blas_on_one_thread() { openblas_set_num_threads(1); }

void gemm(bp_dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c, bool accumulate) {
  if (!accumulate && small_gemm(dtype, a, b, c)) return;
  if (is_blas_type(dtype)) return gemm_blas(dtype, a, b, c, accumulate);
  if (dtype == BP_FLOAT16 || dtype == BP_BFLOAT16) return gemm_half(dtype, a, b, c, accumulate);
  gemm_rows<uint64_t>(dtype, BP_UINT64, a, b, c, accumulate);
}

}  // namespace backplane::cpu
