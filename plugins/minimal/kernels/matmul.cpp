// The matrix product over the last two axes, the others broadcast. Operands arrive contiguous.
#include "kernels.hpp"

namespace minimal {
namespace {

using backplane::scalar::add;
using backplane::scalar::multiply;

// z (rows, columns) = x (rows, depth) @ y (depth, columns). Floats are summed in the widest dtype.
template <class T>
void product(const T* x, const T* y, T* z, int64_t rows, int64_t depth, int64_t columns) {
  using Sum = Wide<T>;
  std::vector<Sum> sums(static_cast<size_t>(columns));
  for (int64_t r = 0; r < rows; ++r) {
    std::fill(sums.begin(), sums.end(), Sum{});
    for (int64_t d = 0; d < depth; ++d) {
      const Sum factor = convert<Sum>(x[r * depth + d]);
      const T* row = y + d * columns;
      for (int64_t c = 0; c < columns; ++c) {
        Sum& sum = sums[static_cast<size_t>(c)];
        sum = apply<add>(sum, apply<multiply>(factor, convert<Sum>(row[c])));
      }
    }
    for (int64_t c = 0; c < columns; ++c) z[r * columns + c] = convert<T>(sums[static_cast<size_t>(c)]);
  }
}

// A vector on the left is a row, on the right a column; neither axis is in the result.
void matmul(ConstTensor<void> x, ConstTensor<void> y, MutTensor<void> out) {
  const bool row = x.ndim() == 1, column = y.ndim() == 1;
  const int64_t depth = x.shape().back(), rows = row ? 1 : x.shape(x.ndim() - 2),
                columns = column ? 1 : y.shape().back();
  const size_t rank = static_cast<size_t>(out.ndim() - !row - !column);
  const auto stack = [&](const ConstTensor<void>& operand) {
    const size_t own = operand.ndim() < 2 ? 0 : static_cast<size_t>(operand.ndim() - 2);
    return broadcast_strides(operand.shape().first(own), operand.strides().first(own), rank);
  };
  const std::vector<int64_t> x_strides = stack(x), y_strides = stack(y);
  dispatch_dtype<BP_MASK_ANY & ~BP_MASK_BOOL>(out.dtype(), [&]<class T>() {
    walk<3>(out.shape().first(rank), {out.strides().first(rank), Ints(x_strides), Ints(y_strides)},
            [&](const auto& at) {
              product(static_cast<const T*>(x.data()) + at[1], static_cast<const T*>(y.data()) + at[2],
                      static_cast<T*>(out.data()) + at[0], rows, depth, columns);
            });
  });
}

}  // namespace

void register_matmul(const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::matmul", kName, kernel<matmul>, .dtypes = BP_MASK_ANY & ~BP_MASK_BOOL));
}

}  // namespace minimal
