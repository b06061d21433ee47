// Matrix products over the last two axes, the others broadcast, and the addend; operands in any layout. By
// cuBLASLt if it is installed and takes them, else by the kernel of device/matmul.cuh.
#include "kernels/families.hpp"
#include "kernels/library_matmul.hpp"
#include "kernels/product.hpp"

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

// Strides of a tensor that broadcasts to another one's shape, along that one's axes.
std::vector<int64_t> broadcast_strides(const Call& call, const bp_tensor& of, const bp_tensor& to) {
  const int32_t lacking = to.dl.ndim - of.dl.ndim;
  bool fits = lacking >= 0;
  std::vector<int64_t> strides(static_cast<size_t>(to.dl.ndim), 0);
  for (int32_t d = 0; fits && d < of.dl.ndim; ++d) {
    const int64_t own = of.dl.shape[d];
    if (own != 1) strides[static_cast<size_t>(lacking + d)] = of.dl.strides[d];
    fits = own == 1 || own == to.dl.shape[lacking + d];
  }
  BP_CHECK(fits, SHAPE, call.op_name(), ": argument z: found a tensor that does not broadcast to the product");
  return strides;
}

// `z`: the addend, or nullptr.
void multiply(const Call& call, const bp_tensor* z) {
  const bp_tensor &left = call.input(0), &right = call.input(1), &out = call.output();
  const std::vector<int64_t> added =
      z ? broadcast_strides(call, *z, out) : std::vector<int64_t>(static_cast<size_t>(out.dl.ndim), 0);
  if (count_of(out) == 0) return;
  const int hidden = (left.dl.ndim == 1) + (right.dl.ndim == 1);
  const std::span<const int64_t> batch(out.dl.shape, static_cast<size_t>(out.dl.ndim - (2 - hidden)));
  const Matrices x = matrices(left, true, batch), y = matrices(right, false, batch);
  const auto matrix_strides = [&](const int64_t* strides) {
    const int64_t* last = strides + out.dl.ndim;
    const int64_t column = right.dl.ndim == 1 ? 0 : last[-1];
    return MatrixStrides{left.dl.ndim == 1 ? 0 : last[right.dl.ndim == 1 ? -1 : -2], column};
  };
  const MatrixStrides out_matrix = matrix_strides(out.dl.strides), added_matrix = matrix_strides(added.data());
  const std::span<const int64_t> out_strides(out.dl.strides, batch.size());
  BatchedProduct by_library{x.rows,     x.columns,    y.columns, {x.row, x.column}, {y.row, y.column},
                            out_matrix, added_matrix, {}};
  for (size_t d = 0; d < batch.size(); ++d)
    by_library.batch.push_back({batch[d], x.batch_strides[d], y.batch_strides[d], out_strides[d], added[d]});
  const auto copy = [&] {
    std::vector<int64_t> strides = added;
    for (int64_t& stride : strides) stride *= item_of(*z);
    launch_copy(call, copy_operands(data_of(out), byte_strides_of(out), data_of(*z), strides, shape_of(out)),
                item_of(*z));
  };
  if (library_matmul(call, std::move(by_library), z ? data_of(*z) : nullptr, std::ref(copy))) return;
  Product product{};
  product.operands = dimensions(batch, y.batch_strides, x.batch_strides);
  product.results = dimensions(batch, out_strides, std::span(added).first(batch.size()));
  product.out = data_of(out), product.x = data_of(left), product.y = data_of(right);
  product.rows = x.rows, product.depth = x.columns, product.columns = y.columns;
  product.x_row = x.row, product.x_column = x.column, product.y_row = y.row, product.y_column = y.column;
  product.out_row = out_matrix.row, product.out_column = out_matrix.column;
  const auto tiles = [](int64_t n) { return static_cast<uint32_t>((n + kTile - 1) / kTile); };
  BP_CHECK(tiles(product.rows) <= 65535, NOT_IMPLEMENTED, call.op_name(), ": found ", product.rows,
           " rows, expected at most ", 65535 * kTile, ". Fix: split the left operand");
  const Grid grid{tiles(product.columns), tiles(product.rows), std::min(product.operands.count, 65535u), kThreads};
  if (!z) return call.launch(typed_module(call.compute()), "matmul", grid, product);
  call.launch(typed_module(call.compute()), "matmul_add", grid, product,
              Addend{data_of(*z), added_matrix.row, added_matrix.column});
}

void matmul(const Call& call) { multiply(call, nullptr); }
void matmul_add(const Call& call) { multiply(call, &call.input(2)); }

}  // namespace

void register_matmul(const Registration& registration) {
  registration.row("matmul", kernel<matmul>, BP_MASK_ANY & ~BP_MASK_BOOL, BP_KERNEL_STRIDED, __FILE__, __LINE__);
  registration.row("matmul_add", kernel<matmul_add>, BP_MASK_FLOATING | BP_MASK_COMPLEX, BP_KERNEL_STRIDED, __FILE__,
                   __LINE__);
}

}  // namespace backplane::cuda
