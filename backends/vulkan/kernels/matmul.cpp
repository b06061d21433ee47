// Matrix products of float32: one dispatch of the tiled shader per matrix of the result's batch.
#include <algorithm>

#include "kernels/families.hpp"

namespace backplane::vulkan {
namespace {

constexpr int64_t kTile = 16, kMaxGroups = 65535;
constexpr int64_t kMaxElements = 1ll << 30;  // the shader counts in 32 bits

// As in kernels/matmul.comp.
struct Push {
  uint64_t result, x, y;
  uint32_t rows, inner, columns, tiles;
};
static_assert(sizeof(Push) == 40);

// Which matrix of an operand meets matrix `i` of the result: the batch axes are aligned at their end and broadcast.
int64_t matrix_of(int64_t i, std::span<const int64_t> result, std::span<const int64_t> operand) {
  int64_t index = 0, step = 1;
  for (size_t d = 0; d < operand.size(); ++d) {
    const int64_t size = operand[operand.size() - 1 - d], across = result[result.size() - 1 - d];
    index += size == 1 ? 0 : i % across * step;
    i /= across;
    step *= size;
  }
  return index;
}

std::span<const int64_t> batch_axes(std::span<const int64_t> shape, size_t matrix_axes) {
  return shape.first(shape.size() - std::min(shape.size(), matrix_axes));
}

void matmul(plugin::Context call, plugin::ConstTensor<float> x, plugin::ConstTensor<float> y,
            plugin::MutTensor<float> out) {
  if (out.size() == 0) return;
  const bool row = x.ndim() == 1, column = y.ndim() == 1;  // a vector is a row on the left, a column on the right
  const int64_t rows = row ? 1 : x.shape(x.ndim() - 2), inner = x.shape(x.ndim() - 1);
  const int64_t columns = column ? 1 : y.shape(y.ndim() - 1);
  const auto batch = batch_axes(out.shape(), (row ? 0u : 1u) + (column ? 0u : 1u));

  Device& device = call.registered<Backend>()->device(call.frame->ordinal);
  std::lock_guard lock(device.mutex);
  const auto address = [&](const bp_tensor& tensor) {
    return device.block(tensor.dl.data, tensor.dl.byte_offset, tensor.nbytes).address + tensor.dl.byte_offset;
  };
  // Without inner elements nothing is read, and the operands may have no memory.
  const uint64_t result = address(*out.handle());
  const uint64_t left = inner == 0 ? result : address(*x.handle()), right = inner == 0 ? result : address(*y.handle());
  const int64_t tiles = ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  constexpr int64_t kItem = sizeof(float);
  for (int64_t i = 0; i < out.size() / (rows * columns); ++i) {
    const int64_t a = matrix_of(i, batch, batch_axes(x.shape(), 2)) * rows * inner;
    const int64_t b = matrix_of(i, batch, batch_axes(y.shape(), 2)) * inner * columns;
    const Push push{result + static_cast<uint64_t>(i * rows * columns * kItem),
                    left + static_cast<uint64_t>(a * kItem),
                    right + static_cast<uint64_t>(b * kItem),
                    static_cast<uint32_t>(rows),
                    static_cast<uint32_t>(inner),
                    static_cast<uint32_t>(columns),
                    static_cast<uint32_t>(tiles)};
    as_stream(call.frame->stream)
        .dispatch(Shader::kMatmul, &push, sizeof(push), static_cast<uint32_t>(std::min(tiles, kMaxGroups)));
  }
}

}  // namespace

void register_matmul(plugin::Registrar& registrar, Backend& backend) {
  registrar.kernel(BP_KERNEL("bp::matmul", "vulkan", plugin::kernel<matmul>, .dtypes = BP_DTYPE_BIT(BP_FLOAT32),
                             .context = &backend, .offset_alignment = sizeof(float), .max_elements = kMaxElements));
}

}  // namespace backplane::vulkan
