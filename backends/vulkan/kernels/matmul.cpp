// Products of matrices over the last two axes, the others broadcast; any strides.
#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

// An operand as matrices: a vector is a row on the left and a column on the right, and neither axis is in the result.
struct Matrices {
  Operand batch;  // the axes before the matrices'
  int64_t rows, columns, row_stride, column_stride;

  Matrices(Operand operand, bool as_row, bool as_column) {
    Sizes &shape = operand.shape, &strides = operand.strides;
    if (as_row) {
      shape.insert(shape.end() - (as_column ? 0 : 1), 1);
      strides.insert(strides.end() - (as_column ? 0 : 1), 0);
    }
    if (as_column) {
      shape.push_back(1);
      strides.push_back(0);
    }
    const size_t rank = shape.size();
    rows = shape[rank - 2];
    columns = shape[rank - 1];
    row_stride = strides[rank - 2];
    column_stride = strides[rank - 1];
    batch = std::move(operand);
    batch.shape.resize(rank - 2);
    batch.strides.resize(rank - 2);
  }
};

// Sides of the tiles that shaders/matmul.comp was compiled with.
constexpr int64_t tile_of(Class c) { return c == Class::kComplex64 || c == Class::kComplex128 ? 32 : 64; }

void matmul(const Call& call) {
  const Operand left = call.input(0), right = call.input(1), result = call.output(0);
  if (result.count() == 0) return;
  const bool row = left.ndim() == 1, column = right.ndim() == 1;
  const Matrices x(left, row, false), y(right, false, column), out(result, row, column);
  const Sizes x_strides = broadcast_strides(x.batch, out.batch.shape);
  const Sizes y_strides = broadcast_strides(y.batch, out.batch.shape);
  Rows rows;
  rows.add(out.batch.shape, {&out.batch.strides, &x_strides, &y_strides});
  const auto n = [](int64_t value) { return static_cast<uint32_t>(value); };
  Push push = call.push();
  push.at = {result.data, left.data, right.data};
  push.dims = call.stage(rows);
  push.n = {n(out.rows),        n(x.columns),      n(out.columns),       n(out.batch.count()),
            rows.rank(),        n(out.row_stride), n(out.column_stride), n(x.row_stride),
            n(x.column_stride), n(y.row_stride),   n(y.column_stride)};
  const Class c = class_of(call.compute());
  const Shader shader{module_of(Module::matmul_float32, c),
                      {0, static_cast<uint8_t>(call.compute()), static_cast<uint8_t>(result.dtype), 0}};
  const int64_t side = tile_of(c);
  const int64_t tiles = ((out.rows + side - 1) / side) * ((out.columns + side - 1) / side) * out.batch.count();
  call.dispatch(shader, push, static_cast<uint32_t>(std::min<int64_t>(tiles, kMaxGroups)), {result.range()},
                {left.range(), right.range()});
}

constexpr Row kRows[] = {
    {"bp::matmul", kernel<matmul>, BP_MASK_FLOATING | BP_MASK_INTEGER | BP_MASK_COMPLEX, BP_KERNEL_STRIDED},
};

}  // namespace

void register_matmul(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan
