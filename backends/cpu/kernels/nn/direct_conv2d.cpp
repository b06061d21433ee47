// See direct_conv2d.hpp.
#include "kernels/nn/direct_conv2d.hpp"

#include <algorithm>
#include <vector>

#include "kernels/nn/shifted_product.hpp"
#include "loops/elementwise.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

constexpr int64_t kPieceWork = int64_t{1} << 20;    // multiply-adds of a piece: about 20 microseconds
constexpr int64_t kPlaneBytes = int64_t{32} << 20;  // images are prepared this much at a time

// Which pixels a plane holds: position `first + step * i` of the image, for i < size; 0 outside the image.
struct Sampling {
  int64_t first, step, size;
};

// One plane: the samples of an image (height, width) as rows of the sampled width.
void sample_plane(const float* image, int64_t height, int64_t width, Sampling rows, Sampling columns, float* plane) {
  const auto first_inside = [](Sampling s) { return s.first >= 0 ? int64_t{0} : (-s.first + s.step - 1) / s.step; };
  const auto inside_end = [](Sampling s, int64_t size) {
    return std::min(s.size, size > s.first ? (size - s.first + s.step - 1) / s.step : int64_t{0});
  };
  const int64_t begin = std::min(first_inside(columns), columns.size);
  const int64_t end = std::max(inside_end(columns, width), begin);
  for (int64_t i = 0; i < rows.size; ++i, plane += columns.size) {
    const int64_t y = rows.first + i * rows.step;
    if (y < 0 || y >= height) {
      std::fill_n(plane, columns.size, 0.0f);
      continue;
    }
    const float* from = image + y * width + columns.first;
    std::fill(plane, plane + begin, 0.0f);
    if (columns.step == 1)
      std::copy(from + begin, from + end, plane + begin);
    else
      for (int64_t j = begin; j < end; ++j) plane[j] = from[j * columns.step];
    std::fill(plane + end, plane + columns.size, 0.0f);
  }
}

struct Results {
  float* data;
  int64_t height, width;
};

// Writes the columns [begin, begin + kShiftedColumns) of a product over rows of `pitch` to where they belong; those
// beyond the width mean nothing.
void store_block(const float* sums, int64_t filters, int64_t pitch, int64_t begin, const Results& out) {
  for (int64_t at = begin; at < begin + kShiftedColumns;) {
    const int64_t row = at / pitch, first = at % pitch;
    const int64_t next = std::min((row + 1) * pitch, begin + kShiftedColumns);
    const int64_t last = std::min(first + next - at, out.width);
    if (row >= out.height) return;
    if (first < last) {
      const float* from = sums + (at - begin);
      float* to = out.data + row * out.width + first;
      for (int64_t i = 0; i < filters; ++i, from += kShiftedColumns, to += out.height * out.width)
        std::copy_n(from, last - first, to);
    }
    at = next;
  }
}

// The planes of a group of an image, and how they are made.
struct Planes {
  int64_t channels, height, width;      // of the image that is sampled
  std::vector<Sampling> rows, columns;  // of each plane of a channel
  std::vector<bool> used;
  int64_t pitch() const { return columns[0].size; }
  int64_t plane() const { return rows[0].size * pitch(); }
  // An odd number of cache lines, so that the channels do not all fall on the same lines of the cache.
  int64_t channel() const { return (plane() * static_cast<int64_t>(rows.size()) + 15) / 16 * 16 | 16; }
  int64_t group() const { return channels * channel(); }

  void make(const float* channel_image, float* out) const {
    for (size_t p = 0; p < rows.size(); ++p)
      if (used[p])
        sample_plane(channel_image, height, width, rows[p], columns[p], out + static_cast<int64_t>(p) * plane());
  }
};

// Images `first` to `first + count` (each times groups), whose planes lie in `memory`.
void multiply_planes(const bp_frame* frame, const Convolution& c, const Planes& planes,
                     const std::vector<int64_t>& offsets, const float* memory, const float* w, int64_t first,
                     int64_t count, float* y) {
  const int64_t pitch = planes.pitch();
  const int64_t blocks = (c.windows.out_height * pitch + kShiftedColumns - 1) / kShiftedColumns;
  const auto range = [&](int64_t begin, int64_t end) {
    const Scratch<float> sums(c.filters * kShiftedColumns);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t unit = i / blocks, at = i % blocks * kShiftedColumns;
      shifted_product(w + (first + unit) % c.groups * c.kernel_size(), c.filters, c.taps(),
                      memory + unit * planes.group() + at, offsets.data(), sums.get());
      store_block(sums.get(), c.filters, pitch, at,
                  {y + (first + unit) * c.result_size(), c.windows.out_height, c.windows.out_width});
    }
  };
  const int64_t grain = std::max<int64_t>(kPieceWork / (c.filters * c.taps() * kShiftedColumns), 1);
  plugin::parallel_for(frame, 0, count * blocks, grain, range);
}

}  // namespace

void direct_forward(const bp_frame* frame, const Convolution& c, const float* x, const float* w, float* y) {
  const Windows& v = c.windows;
  const int64_t sy = v.stride[0], sx = v.stride[1];
  Planes planes{c.channels, v.height, v.width, {}, {}, {}};
  const int64_t plane_rows = v.out_height + (v.kernel[0] - 1) * v.dilation[0] / sy;
  const int64_t plane_columns = v.out_width + (v.kernel[1] - 1) * v.dilation[1] / sx;
  for (int64_t r = 0; r < sy; ++r)
    for (int64_t q = 0; q < sx; ++q) {
      planes.rows.push_back({r - v.padding[0], sy, plane_rows});
      planes.columns.push_back({q - v.padding[1], sx, plane_columns});
      planes.used.push_back(false);
    }
  std::vector<int64_t> offsets;
  for (int64_t channel = 0; channel < c.channels; ++channel)
    for (int64_t ky = 0; ky < v.kernel[0]; ++ky)
      for (int64_t kx = 0; kx < v.kernel[1]; ++kx) {
        const int64_t dy = ky * v.dilation[0], dx = kx * v.dilation[1], plane = dy % sy * sx + dx % sx;
        planes.used[static_cast<size_t>(plane)] = true;
        offsets.push_back(channel * planes.channel() + plane * planes.plane() + dy / sy * planes.pitch() + dx / sx);
      }
  const int64_t units = c.images * c.groups, source = v.image();
  const int64_t at_once = std::clamp<int64_t>(kPlaneBytes / (planes.group() * int64_t{sizeof(float)}), 1, units);
  // A block reads beyond its last row: those columns mean nothing, but must be readable.
  const Scratch<float> memory(at_once * planes.group() + planes.pitch() + kShiftedColumns);
  std::fill_n(memory.get() + at_once * planes.group(), planes.pitch() + kShiftedColumns, 0.0f);
  for (int64_t first = 0; first < units; first += at_once) {
    const int64_t count = std::min(at_once, units - first);
    plugin::parallel_for(frame, 0, count * c.channels, std::max<int64_t>(kCheapGrain / planes.channel(), 1),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i)
                             planes.make(x + (first * c.channels + i) * source, memory.get() + i * planes.channel());
                         });
    multiply_planes(frame, c, planes, offsets, memory.get(), w, first, count, y);
  }
}

}  // namespace backplane::cpu
