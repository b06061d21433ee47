// Products of matrices over the last two axes, the others broadcast; any strides.
#include <algorithm>

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

// Side of a tile, in 16s. Two tiles fit the 16 KiB of shared memory that every device has.
constexpr int64_t largest_of(Class c) { return c == Class::kComplex64 || c == Class::kComplex128 ? 2 : 4; }

struct Product {
  int64_t rows, inner, columns, matrices;
};

// Do rows of two neighbours `stride` apart start at whole words of 64 bits, in every matrix of the batch?
bool in_words(const Matrices& m, int64_t stride) {
  const Sizes& strides = m.batch.strides;
  return m.batch.dtype == BP_FLOAT32 && m.batch.data % 8 == 0 && stride % 2 == 0 &&
         std::all_of(strides.begin(), strides.end(), [](int64_t each) { return each % 2 == 0; });
}

// The bits of kOption that shaders/matmul_blocks.comp has beyond blocks.glsl.
uint8_t pairs_of(const Matrices& x, const Matrices& y, const Product& p) {
  const bool left = x.column_stride == 1 && p.inner % 2 == 0 && in_words(x, x.row_stride);
  const bool right = y.column_stride == 1 && p.columns % 2 == 0 && in_words(y, y.row_stride);
  const bool runs = y.row_stride == 1 && p.inner % 2 == 0 && in_words(y, y.column_stride);
  return static_cast<uint8_t>((left ? 16 : 0) | (runs ? 128 : right ? 32 : 0) | (p.inner % 2 ? 64 : 0));
}

void matmul(const Call& call) {
  const Operand left = call.input(0), right = call.input(1), result = call.output(0);
  if (result.count() == 0) return;
  const bool row = left.ndim() == 1, column = right.ndim() == 1;
  const Matrices x(left, row, false), y(right, false, column), whole(result, row, column);
  const Class c = class_of(call.compute());
  const Product p{whole.rows, x.columns, whole.columns, whole.batch.count()};
  const Device& device = call.stream().device();
  const bool blocks = device.uses_blocks();
  const Tiles tiles = blocks ? blocks_for(p.rows, p.columns, device.subgroup_size(), c == Class::kFloat32 ? 4 : 1)
                             : tiles_for(p.rows, p.columns, largest_of(c));
  const int64_t slices = slices_for(tiles.count * p.matrices, p.inner);
  Operand target = result;
  if (slices > 1) {
    Sizes shape = result.shape;
    shape.insert(shape.begin(), slices);
    target = call.scratch(partial_dtype(result.dtype), shape);
  }
  const Matrices out(slices > 1 ? contiguous(target.data, target.dtype, result.shape) : result, row, column);
  const Sizes x_strides = broadcast_strides(x.batch, out.batch.shape);
  const Sizes y_strides = broadcast_strides(y.batch, out.batch.shape);
  Rows rows;
  rows.add(out.batch.shape, {&out.batch.strides, &x_strides, &y_strides});
  const auto n = [](int64_t value) { return static_cast<uint32_t>(value); };
  Push push = call.push();
  push.at = {target.data, left.data, right.data};
  push.dims = call.stage(rows);
  push.n = {n(out.rows),        n(x.columns),      n(out.columns),       n(out.batch.count()),
            rows.rank(),        n(out.row_stride), n(out.column_stride), n(x.row_stride),
            n(x.column_stride), n(y.row_stride),   n(y.column_stride),   n(slices)};
  const uint8_t option = blocks ? static_cast<uint8_t>(tiles.option | pairs_of(x, y, p)) : tiles.option;
  const Shader shader{module_of(blocks ? Module::matmul_blocks_float32 : Module::matmul_float32, c),
                      {0, static_cast<uint8_t>(call.compute()), static_cast<uint8_t>(target.dtype), option}};
  const int64_t parts = tiles.count * p.matrices * slices;
  call.dispatch(shader, push, n(groups_of(device, parts)), {target.range()}, {left.range(), right.range()});
  if (slices > 1) record_sum(call, result, target);
}

constexpr Row kRows[] = {
    {"bp::matmul", kernel<matmul>, BP_MASK_FLOATING | BP_MASK_INTEGER | BP_MASK_COMPLEX, BP_KERNEL_STRIDED},
};

}  // namespace

Tiles tiles_for(int64_t rows, int64_t columns, int64_t largest) {
  const auto doublings = [&](int64_t size) { return size <= 16 ? 0 : size <= 32 || largest < 4 ? 1 : 2; };
  const int down = doublings(rows), across = doublings(columns);
  const auto pieces = [](int64_t size, int doubled) { return (size + (16 << doubled) - 1) / (16 << doubled); };
  return {pieces(rows, down) * pieces(columns, across), static_cast<uint8_t>(down | across << 2)};
}

Tiles blocks_for(int64_t rows, int64_t columns, int64_t lanes, int64_t most_across) {
  constexpr int64_t kMostDown = 4;
  const auto pieces = [&](int64_t size, int doubled) { return (size + (lanes << doubled) - 1) / (lanes << doubled); };
  // A piece costs what its lines cost, and one line more.
  const auto doublings = [&](int64_t size, int64_t most) {
    const auto cost = [&](int doubled) { return pieces(size, doubled) * ((1 << doubled) + 1); };
    int best = 0;
    for (int doubled = 1; (1 << doubled) <= most; ++doubled)
      if (cost(doubled) < cost(best)) best = doubled;
    return best;
  };
  const int down = doublings(rows, kMostDown), across = doublings(columns, most_across);
  return {pieces(rows, down) * pieces(columns, across), static_cast<uint8_t>(down | across << 2)};
}

int64_t groups_of(const Device& device, int64_t parts) {
  constexpr int64_t kInvocations = 32;  // of shaders/blocks.glsl
  const int64_t each = device.uses_blocks() ? std::max<int64_t>(kInvocations / device.subgroup_size(), 1) : 1;
  return std::min<int64_t>((parts + each - 1) / each, kMaxGroups);
}

int64_t slices_for(int64_t parts, int64_t inner) {
  constexpr int64_t kParts = 64, kLeast = 256;  // elements of a slice
  return std::clamp<int64_t>(std::min(kParts / std::max<int64_t>(parts, 1), inner / kLeast), 1, kParts);
}

void register_matmul(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan
