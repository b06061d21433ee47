// See depthwise_layout.hpp.
#include "kernels/nn/depthwise_layout.hpp"

#include <algorithm>

namespace backplane::cpu {
namespace {

constexpr int64_t kMaskPadding = 8;  // bits are read as up to eight bytes

void make_masks(DepthwiseLayout& l, int64_t lanes) {
  const Windows& v = l.windows;
  l.mask_bytes = (lanes + 7) / 8;
  l.mask_step = l.blocks * l.mask_bytes;
  l.masks.assign(static_cast<size_t>(v.kernel[1] * l.mask_step + kMaskPadding), 0xff);
  for (int64_t kx = 0; kx < v.kernel[1]; ++kx) {
    const Inside columns = inside(kx, v.stride[1], v.padding[1], v.dilation[1], v.width, v.out_width);
    uint8_t* bits = l.masks.data() + kx * l.mask_step;
    const auto clear = [&](int64_t block, int64_t lane) {
      bits[block * l.mask_bytes + lane / 8] &= static_cast<uint8_t>(~(1U << (lane % 8)));
    };
    const auto clear_columns = [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < l.length && begin < end; row += v.out_width)
        for (int64_t i = row + begin; i < row + end; ++i) {
          // The last block of in_place shows columns of the one before it too.
          const int64_t moved = i - (l.length - lanes);
          if (l.in_place && moved >= 0) clear(l.blocks - 1, moved);
          if (!l.in_place || i / lanes < l.blocks - 1) clear(i / lanes, i % lanes);
        }
    };
    l.plain.push_back(columns.begin == 0 && columns.end == v.out_width);
    clear_columns(0, columns.begin);
    clear_columns(columns.end, v.out_width);
  }
}

}  // namespace

DepthwiseLayout depthwise_layout(const Windows& v, int64_t lanes) {
  DepthwiseLayout l{};
  l.windows = v;
  const int64_t stride = v.stride[0];
  const auto both = [](const int64_t(&pair)[2], int64_t value) { return pair[0] == value && pair[1] == value; };
  l.in_place = stride == 2 && both(v.kernel, 3) && both(v.dilation, 1) && std::max(v.padding[0], v.padding[1]) <= 2 &&
               v.out_width >= lanes && lanes > 1;
  l.one_line = stride == 1 && v.out_width == v.width;
  l.rows = l.one_line ? 1 : v.out_height;
  l.length = l.one_line ? v.outputs() : v.out_width;
  l.blocks = (l.length + lanes - 1) / lanes;
  const int64_t around = l.one_line ? 0 : v.padding[1];
  l.pitch = (v.width + 2 * around + stride - 1) / stride * stride;
  // Masks leave out what one_line reads before its first row.
  const int64_t lead = l.one_line ? v.padding[1] : 0;
  l.before = v.padding[0] * l.pitch + around + lead;
  const int64_t reach = l.one_line ? (v.kernel[1] - 1) * v.dilation[1] : 0;
  const int64_t rows =
      std::max(v.height + 2 * v.padding[0], (v.out_height - 1) * stride + 1 + (v.kernel[0] - 1) * v.dilation[0]);
  l.size = (rows * l.pitch + lead + reach + 3 * lanes) / (2 * lanes) * (2 * lanes);
  l.half = stride == 2 ? l.size / 2 + 2 * lanes : 0;
  l.row_step = l.pitch;
  for (int64_t ky = 0; ky < v.kernel[0]; ++ky)
    for (int64_t kx = 0; kx < v.kernel[1]; ++kx) {
      const int64_t dx = kx * v.dilation[1];
      l.offsets.push_back(ky * v.dilation[0] * l.pitch / stride + dx / stride + dx % stride * l.half);
    }
  if (l.one_line || l.in_place) make_masks(l, lanes);
  if (l.in_place) {
    // Between the results whose first column, or whose last one, is outside.
    const Inside first = inside(0, stride, v.padding[1], 1, v.width, v.out_width);
    const Inside last = inside(v.kernel[1] - 1, stride, v.padding[1], 1, v.width, v.out_width);
    l.plain_begin = std::min((first.begin + lanes - 1) / lanes, l.blocks);
    l.plain_end = std::max(last.end == v.out_width ? l.blocks : last.end / lanes, l.plain_begin);
    // The last block is moved back.
    if (l.plain_end == l.blocks && l.length - lanes < first.begin) l.plain_end = std::max(l.blocks - 1, l.plain_begin);
  }
  return l;
}

}  // namespace backplane::cpu
