// The batch rule of the matrix product, of matrices and vectors, with as few and as large products as there can be.
#include "batch/batch_matmul.hpp"

#include <algorithm>

#include "batch/batch_rules.hpp"
#include "batch/batched_call.hpp"

namespace backplane::core {
namespace {

// The operands of one call. Ranks do not count the batch axis.
struct Product {
  BatchedCall& c;
  int32_t x, y;
  int32_t x_rank() const { return c.row(x).ndim; }
  int32_t y_rank() const { return c.row(y).ndim; }
};

void product_of(Product p, TensorImpl* x, TensorImpl* y) {
  p.c.set_tensor(p.x, x);
  p.c.set_tensor(p.y, y);
  p.c.run();
}

// A batched vector (batch, k) as (batch, 1, …, 1, rows, columns), with `rank` dims behind the batch.
TensorImpl* as_matrix(BatchedCall& c, TensorImpl* v, int32_t rank, int64_t rows, int64_t columns) {
  const auto ndim = static_cast<size_t>(rank) + 1;
  int64_t* shape = c.ints(ndim);
  shape[0] = v->dl.shape[0];
  std::fill(shape + 1, shape + ndim, 1);
  shape[ndim - 2] = rows;
  shape[ndim - 1] = columns;
  return c.reshape(v, shape, ndim);
}

// The result per row, behind the batch.
void drop_to(BatchedCall& c, const ShapeResult& row) {
  const auto ndim = static_cast<size_t>(row.ndim) + 1;
  int64_t* shape = c.ints(ndim);
  shape[0] = c.size();
  std::copy_n(row.sizes, row.ndim, shape + 1);
  c.reshape_result(0, shape, ndim);
}

void vectors(Product p, const ShapeResult& row) {
  BatchedCall& c = p.c;
  if (!c.batched[p.y]) return c.run();                                    // (batch, k) with (k)
  if (!c.batched[p.x]) return product_of(p, c.inner(p.y), c.inner(p.x));  // the other way round
  const int64_t k = c.row(p.x).shape[0];
  product_of(p, as_matrix(c, c.inner(p.x), 2, 1, k), as_matrix(c, c.inner(p.y), 2, k, 1));
  drop_to(c, row);
}

void vector_times_matrices(Product p, const ShapeResult& row) {
  BatchedCall& c = p.c;
  if (!c.batched[p.x]) return c.run();                     // (k) with (batch, …, k, m)
  if (!c.batched[p.y] && p.y_rank() == 2) return c.run();  // (batch, k) with (k, m): one product
  product_of(p, as_matrix(c, c.inner(p.x), p.y_rank(), 1, c.row(p.x).shape[0]), c.inner(p.y));
  drop_to(c, row);
}

void matrices_times_vector(Product p, const ShapeResult& row) {
  BatchedCall& c = p.c;
  if (!c.batched[p.y]) return c.run();  // (batch, …, n, k) with (k)
  if (!c.batched[p.x] && p.x_rank() == 2) {
    constexpr int64_t kTransposed[] = {1, 0};
    return product_of(p, c.inner(p.y), c.permute(c.inner(p.x), kTransposed, 2));  // (batch, k) with (k, n): one product
  }
  product_of(p, c.inner(p.x), as_matrix(c, c.inner(p.y), p.x_rank(), c.row(p.y).shape[0], 1));
  drop_to(c, row);
}

void matrices(Product p) {
  BatchedCall& c = p.c;
  const int32_t rank = std::max(p.x_rank(), p.y_rank());
  product_of(p, c.batched[p.x] ? c.padded(c.inner(p.x), rank) : c.inner(p.x),
             c.batched[p.y] ? c.padded(c.inner(p.y), rank) : c.inner(p.y));
}

}  // namespace

void batch_matmul(BatchedCall& c, const ShapeResult* row) {
  const bp_shape_rule& rule = c.record.shapes[0];
  const Product p{c, static_cast<int32_t>(rule.args[0]), static_cast<int32_t>(rule.args[1])};
  if (p.x_rank() == 1) return p.y_rank() == 1 ? vectors(p, *row) : vector_times_matrices(p, *row);
  return p.y_rank() == 1 ? matrices_times_vector(p, *row) : matrices(p);
}

}  // namespace backplane::core
