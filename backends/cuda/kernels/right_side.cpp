// See right_side.hpp.
#include "kernels/right_side.hpp"

namespace backplane::cuda {
namespace {

// Steps along the dimensions of `whole` in a stack of `shape` that broadcasts to it, whose matrices are `unit` apart.
std::vector<int64_t> broadcast_steps(std::span<const int64_t> shape, std::span<const int64_t> whole, int64_t unit) {
  std::vector<int64_t> steps(whole.size(), 0);
  for (size_t own = shape.size(), d = whole.size(); own-- > 0; unit *= shape[own]) {
    --d;
    if (shape[own] != 1) steps[d] = unit;
  }
  return steps;
}

}  // namespace

RightSide::RightSide(const Factoring& x)
    : x_(x),
      vector_(x.call().input(1).dl.ndim == 1),
      columns_(vector_ ? 1 : x.call().input(1).dl.shape[x.call().input(1).dl.ndim - 1]) {
  x.stack().require_square(x.call());
  const bp_tensor &b = x.call().input(1), &out = x.call().output();
  const int64_t rows = b.dl.shape[vector_ ? 0 : b.dl.ndim - 2];
  BP_CHECK(rows == x.stack().rows, SHAPE, x.call().op_name(), ": found ", x.stack().rows, " x ", x.stack().columns,
           " matrices and a right side of ", rows, " rows, expected as many");
  shape_.assign(out.dl.shape, out.dl.shape + out.dl.ndim - (vector_ ? 1 : 2));
  for (const int64_t size : shape_) count_ *= size;
}

std::vector<int64_t> RightSide::steps_of_matrices(int64_t unit) const {
  return broadcast_steps(x_.stack().shape, shape_, unit);
}

std::vector<int64_t> RightSide::matrices() const {
  const std::vector<int64_t> steps = steps_of_matrices(1);
  std::vector<int64_t> found(static_cast<size_t>(count_), 0);
  for (int64_t i = 0; i < count_; ++i)
    for (int64_t d = static_cast<int64_t>(shape_.size()) - 1, rest = i; d >= 0; --d) {
      const auto axis = static_cast<size_t>(d);
      found[static_cast<size_t>(i)] += rest % shape_[axis] * steps[axis];
      rest /= shape_[axis];
    }
  return found;
}

Dimensions RightSide::stack() const {
  const std::vector<int64_t> steps = steps_of_matrices(x_.stack().size() * x_.item());
  return dimensions(shape_, steps, steps);
}

char* RightSide::load() const {
  const bp_tensor& b = x_.call().input(1);
  const int64_t n = x_.stack().rows, item = x_.item();
  const std::vector<int64_t> own(b.dl.shape, b.dl.shape + std::max(b.dl.ndim - 2, 0));
  const int64_t size = n * columns_ * item;
  char* y = x_.elements(count_ * n * columns_);
  auto shape = shape_, from = broadcast_steps(own, shape_, size), to = broadcast_steps(shape_, shape_, size);
  shape.insert(shape.end(), {n, columns_});
  from.insert(from.end(), {columns_ * item, item});
  to.insert(to.end(), {item, n * item});
  launch_copy(x_.call(), copy_operands(y, to, data_of(b), from, shape), item);
  return y;
}

void RightSide::store(char* y) const {
  const int64_t n = x_.stack().rows, item = x_.item();
  launch_copy(x_.call(),
              copy_operands(data_of(x_.call().output()), {n * columns_ * item, columns_ * item, item}, y,
                            {n * columns_ * item, item, n * item}, {count_, n, columns_}),
              item);
}

}  // namespace backplane::cuda
