// Matrix products over the last two axes, the others broadcast; operands in any layout. By cuBLASLt where that is there
// and takes them, else by the kernel of device/matmul.cuh.
#include "kernels/families.hpp"
#include "kernels/library_matmul.hpp"

namespace backplane::cuda {
namespace {

// An operand as matrices: a vector on the left is a row, on the right a column. Strides in elements.
struct Matrices {
  int64_t rows, columns, row, column;
  std::vector<int64_t> batch_strides;
};

Matrices matrices(const bp_tensor& tensor, bool left, std::span<const int64_t> batch) {
  const int32_t rank = tensor.dl.ndim;
  const int64_t *shape = tensor.dl.shape, *strides = tensor.dl.strides;
  Matrices made{1, 1, 0, 0, std::vector<int64_t>(batch.size(), 0)};
  if (rank == 1) {
    (left ? made.columns : made.rows) = shape[0];
    (left ? made.column : made.row) = strides[0];
    return made;
  }
  made = {shape[rank - 2], shape[rank - 1], strides[rank - 2], strides[rank - 1], std::move(made.batch_strides)};
  for (int32_t d = 0; d < rank - 2; ++d)
    if (shape[d] != 1) made.batch_strides[batch.size() - static_cast<size_t>(rank - 2 - d)] = strides[d];
  return made;
}

void matmul(const Call& call) {
  const bp_tensor &left = call.input(0), &right = call.input(1), &out = call.output();
  if (count_of(out) == 0) return;
  const int hidden = (left.dl.ndim == 1) + (right.dl.ndim == 1);
  const std::span<const int64_t> batch(out.dl.shape, static_cast<size_t>(out.dl.ndim - (2 - hidden)));
  const Matrices x = matrices(left, true, batch), y = matrices(right, false, batch);
  const int64_t* last = out.dl.strides + out.dl.ndim;
  const int64_t out_column = right.dl.ndim == 1 ? 0 : last[-1];
  const int64_t out_row = left.dl.ndim == 1 ? 0 : last[right.dl.ndim == 1 ? -1 : -2];
  const std::span<const int64_t> out_strides(out.dl.strides, batch.size());
  BatchedProduct by_library{x.rows, x.columns, y.columns, {x.row, x.column}, {y.row, y.column}, {out_row, out_column},
                            {}};
  for (size_t d = 0; d < batch.size(); ++d)
    by_library.batch.push_back({batch[d], x.batch_strides[d], y.batch_strides[d], out_strides[d]});
  if (library_matmul(call, std::move(by_library))) return;
  Product product{};
  product.operands = dimensions(batch, y.batch_strides, x.batch_strides);
  product.results = dimensions(batch, out_strides, out_strides);
  product.out = data_of(out), product.x = data_of(left), product.y = data_of(right);
  product.rows = x.rows, product.depth = x.columns, product.columns = y.columns;
  product.x_row = x.row, product.x_column = x.column, product.y_row = y.row, product.y_column = y.column;
  product.out_row = out_row, product.out_column = out_column;
  const auto tiles = [](int64_t n) { return static_cast<uint32_t>((n + kTile - 1) / kTile); };
  BP_CHECK(tiles(product.rows) <= 65535, NOT_IMPLEMENTED, call.op_name(), ": found ", product.rows,
           " rows, expected at most ", 65535 * kTile, ". Fix: split the left operand");
  call.launch(typed_module(call.compute()), "matmul",
              {tiles(product.columns), tiles(product.rows), std::min(product.operands.count, 65535u), kThreads},
              product);
}

}  // namespace

void register_matmul(const Registration& registration) {
  registration.row("matmul", kernel<matmul>, BP_MASK_ANY & ~BP_MASK_BOOL, BP_KERNEL_STRIDED, __FILE__, __LINE__);
}

}  // namespace backplane::cuda
