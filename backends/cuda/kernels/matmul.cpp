// Matrix products of float32 by cuBLAS: one strided batch where both operands have the result's batch, or else one call
// per matrix.
//
// cuBLAS is column-major: a row-major product out = x y is its product out' = y' x' of the same memory.
#include <algorithm>
#include <climits>

#include "kernels/families.hpp"
#include "runtime/check.hpp"

namespace backplane::cuda {
namespace {

using Shape = std::span<const int64_t>;

// Which matrix of an operand meets matrix `i` of the result: the batch axes are aligned at their end and broadcast.
int64_t matrix_of(int64_t i, Shape result, Shape operand) {
  int64_t index = 0, step = 1;
  for (size_t d = 0; d < operand.size(); ++d) {
    const int64_t size = operand[operand.size() - 1 - d], across = result[result.size() - 1 - d];
    index += size == 1 ? 0 : i % across * step;
    i /= across;
    step *= size;
  }
  return index;
}

Shape batch_axes(Shape shape, size_t matrix_axes) {
  return shape.first(shape.size() - std::min(shape.size(), matrix_axes));
}

struct Product {
  cublasHandle_t blas;
  int rows, inner, columns;

  int64_t x_size() const { return int64_t{rows} * inner; }
  int64_t y_size() const { return int64_t{inner} * columns; }
  int64_t out_size() const { return int64_t{rows} * columns; }
  void run(const float* x, const float* y, float* out, int batch) const {
    const float one = 1, zero = 0;
    check(cublasSgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, columns, rows, inner, &one, y, columns, y_size(), x,
                                    inner, x_size(), &zero, out, columns, out_size(), batch),
          "cublasSgemmStridedBatched");
  }
};

void matmul(plugin::Context call, plugin::ConstTensor<float> x, plugin::ConstTensor<float> y,
            plugin::MutTensor<float> out) {
  if (out.size() == 0) return;
  const bool row = x.ndim() == 1, column = y.ndim() == 1;  // a vector is a row on the left, a column on the right
  const int64_t inner = x.shape(x.ndim() - 1);
  const DeviceScope scope(call.frame->ordinal);
  Stream& stream = as_stream(call.frame->stream);
  if (inner == 0) {  // nothing is summed, and cuBLAS takes no leading dimension of 0
    check(cudaMemsetAsync(out.data(), 0, out.handle()->nbytes, stream.handle()), "cudaMemsetAsync");
    return;
  }
  const Product product{stream.blas(), row ? 1 : static_cast<int>(x.shape(x.ndim() - 2)), static_cast<int>(inner),
                        column ? 1 : static_cast<int>(y.shape(y.ndim() - 1))};
  const Shape batch = batch_axes(out.shape(), (row ? 0u : 1u) + (column ? 0u : 1u));
  const int64_t matrices = out.size() / product.out_size();
  if (x.size() == matrices * product.x_size() && y.size() == matrices * product.y_size()) {
    product.run(x.data(), y.data(), out.data(), static_cast<int>(matrices));
    return;
  }
  for (int64_t i = 0; i < matrices; ++i)
    product.run(x.data() + matrix_of(i, batch, batch_axes(x.shape(), 2)) * product.x_size(),
                y.data() + matrix_of(i, batch, batch_axes(y.shape(), 2)) * product.y_size(),
                out.data() + i * product.out_size(), 1);
}

}  // namespace

void register_matmul(plugin::Registrar& registrar) {
  // cuBLAS counts rows, columns and matrices in int.
  registrar.kernel(BP_KERNEL("bp::matmul", "cuda", plugin::kernel<matmul>, .dtypes = BP_DTYPE_BIT(BP_FLOAT32),
                             .max_elements = INT_MAX));
}

}  // namespace backplane::cuda
