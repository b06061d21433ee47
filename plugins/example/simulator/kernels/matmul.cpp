// Matrix product over the last two axes, the others broadcast.
//
// The innermost loop runs along rows of y and of the result, so that the compiler vectorises it; blocks of rows of y
// stay in the first cache while the rows of x pass over them.
#include <algorithm>

#include "kernels.hpp"
#include "walk.hpp"

namespace sim {
namespace {

constexpr int64_t kBlockDepth = 64;   // rows of y at a time
constexpr int64_t kBlockWidth = 256;  // columns of y at a time

// z (rows, columns) = x (rows, depth) @ y (depth, columns), all contiguous.
template <class T, class Sum>
void multiply(const T* x, const T* y, Sum* z, int64_t rows, int64_t depth, int64_t columns) {
  std::fill(z, z + rows * columns, Sum{0});
  for (int64_t j = 0; j < columns; j += kBlockWidth)
    for (int64_t k = 0; k < depth; k += kBlockDepth) {
      const int64_t j_end = std::min(columns, j + kBlockWidth), k_end = std::min(depth, k + kBlockDepth);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t d = k; d < k_end; ++d) {
          const Sum factor = x[r * depth + d];
          for (int64_t c = j; c < j_end; ++c)
            z[r * columns + c] = wrapping_add(z[r * columns + c], wrapping_multiply(factor, Sum(y[d * columns + c])));
        }
    }
}

// Half floats are summed in float, and rounded once.
template <class T>
void multiply_into(const T* x, const T* y, T* z, int64_t rows, int64_t depth, int64_t columns) {
  if constexpr (kIsHalf<T>) {
    std::vector<float> sums(static_cast<size_t>(rows * columns));
    multiply(x, y, sums.data(), rows, depth, columns);
    std::transform(sums.begin(), sums.end(), z, [](float sum) { return T(sum); });
  } else {
    multiply(x, y, z, rows, depth, columns);
  }
}

// A vector on the left is a row, on the right a column; neither axis is in the result.
struct Product {
  Operand x, y, out;
  std::vector<int64_t> batch;

  Product(Operand left, Operand right, Operand result)
      : x(std::move(left)), y(std::move(right)), out(std::move(result)) {
    const int hidden = (x.ndim() == 1) + (y.ndim() == 1);
    if (x.ndim() == 1) prepend(x);
    if (y.ndim() == 1) append(y);
    batch.assign(out.shape.begin(), out.shape.end() - (2 - hidden));
  }

  static void prepend(Operand& vector) {
    vector.shape.insert(vector.shape.begin(), 1);
    vector.strides.insert(vector.strides.begin(), 0);
  }
  static void append(Operand& vector) {
    vector.shape.push_back(1);
    vector.strides.push_back(1);
  }
  std::vector<int64_t> batch_strides(const Operand& operand) const {
    Operand outer = operand;
    outer.shape.resize(outer.shape.size() - 2);
    outer.strides.resize(outer.shape.size());
    return broadcast_strides(outer, batch);
  }

  template <class T>
  void run() const {
    const int64_t rows = x.shape[x.shape.size() - 2], depth = x.shape.back(), columns = y.shape.back();
    if (rows == 0 || columns == 0) return;  // no memory to walk
    std::vector<int64_t> out_strides(batch.size());
    int64_t stride = rows * columns;
    for (size_t d = batch.size(); d-- > 0; stride *= batch[d]) out_strides[d] = stride;
    walk<3>(batch, {out_strides, batch_strides(x), batch_strides(y)}, [&](const auto& at) {
      const auto operand = [&](const Operand& of, int64_t offset) {  // sums of nothing have operands without memory
        return depth == 0 ? nullptr : reinterpret_cast<const T*>(of.data) + offset;
      };
      multiply_into(operand(x, at[1]), operand(y, at[2]), reinterpret_cast<T*>(out.data) + at[0], rows, depth, columns);
    });
  }
};

void matmul(const Call& call) {
  dispatch_dtype<kNumbers>(call.compute(), [&]<class T>() {
    call.record([product = Product(call.input(0), call.input(1), call.output(0))] { product.run<T>(); });
  });
}

constexpr Row kRows[] = {{"bp::matmul", kernel<matmul>, kNumbers, 0}};

}  // namespace

Table matmul_kernels() { return {__FILE__, kRows}; }

}  // namespace sim
