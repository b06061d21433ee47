// See depthwise_conv2d.hpp.
//
// A plane (one channel of one image) is copied between zeros, so that the kernel's elements read whole vectors. If
// strides are 1 and a row of results is as long as a row of the image, the rows are one *line*, between rows of zeros;
// masks leave out the columns outside the image. Only the line's ends are copied: the rest is read where it lies. Else
// rows have columns of zeros around them, and are computed one by one; for strides of 2 the copy is split into its even
// and its odd columns. Wide rows by kernels of 3 by 3 are read where they lie: a little of the planes before and behind
// is read too, and masked.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/depthwise_conv2d.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>

#include "kernels/nn/conv_tail-inl.hpp"
#include "kernels/nn/depthwise_conv2d.hpp"
#include "kernels/nn/depthwise_in_place-inl.hpp"
#include "kernels/nn/depthwise_layout.hpp"
#include "loops/elementwise.hpp"
#include "runtime/scratch.hpp"
#include "simd/chosen_table.hpp"
#include "simd/unrolled-inl.hpp"

#ifndef BACKPLANE_CPU_DEPTHWISE_CONV2D
#define BACKPLANE_CPU_DEPTHWISE_CONV2D
namespace backplane::cpu {

struct DepthwiseTable {
  int64_t lanes;
  void (*plane)(const DepthwisePlane&);
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE void copy_row(const float* from, int64_t n, float* to) {
  const Floats d;
  const int64_t lanes = lanes_of_floats();
  if (n < lanes) {
    std::copy_n(from, n, to);
    return;
  }
  for (int64_t i = 0; i + lanes <= n; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  hn::StoreU(hn::LoadU(d, from + n - lanes), d, to + n - lanes);
}

// Whole vectors, so up to a vector more than `n` of each.
HWY_INLINE void split_columns(const float* from, int64_t n, float* even, float* odd) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < n; ++i) even[i] = from[2 * i], odd[i] = from[2 * i + 1];
#else
  const Floats d;
  const int64_t lanes = lanes_of_floats();
  for (int64_t i = 0; i < n; i += lanes) {
    const V low = hn::LoadU(d, from + 2 * i), high = hn::LoadU(d, from + 2 * i + lanes);
    hn::StoreU(hn::ConcatEven(d, high, low), d, even + i);
    hn::StoreU(hn::ConcatOdd(d, high, low), d, odd + i);
  }
#endif
}

// What the kernel's elements read: the copy, or its columns of each parity.
HWY_INLINE const float* fill_copy(const DepthwisePlane& p) {
  const DepthwiseLayout& l = *p.layout;
  const Windows& v = l.windows;
  if (l.one_line) {
    copy_row(p.x, v.image(), p.copy + l.before);
    return p.copy;
  }
  for (int64_t i = 0; i < v.height; ++i) copy_row(p.x + i * v.width, v.width, p.copy + l.before + i * l.pitch);
  if (l.half == 0) return p.copy;
  split_columns(p.copy, l.size / 2, p.copy + l.size, p.copy + l.size + l.half);
  return p.copy + l.size;
}

HWY_INLINE void store_block(const DepthwisePlane& p, float* line, int64_t block, V sum) {
  const Floats d;
  const int64_t at = block * lanes_of_floats(), count = p.layout->length - at;
  V sums[1] = {sum};
  apply_tail(*p.tail, p.channel, d, sums);
  if (count >= lanes_of_floats())
    hn::StoreU(sums[0], d, line + at);
  else
    hn::BlendedStore(sums[0], hn::FirstN(d, static_cast<size_t>(count)), d, line + at);
}

// N blocks of a line. The last block may be shorter.
template <int N>
HWY_INLINE void store_blocks(const DepthwisePlane& p, int64_t block, V (&sums)[N]) {
  const Floats d;
  const int64_t lanes = lanes_of_floats(), count = p.layout->length - (block + N - 1) * lanes;
  float* to = p.y + block * lanes;
  apply_tail(*p.tail, p.channel, d, sums);
  unrolled<N - 1>([&](auto i) HWY_ATTR { hn::StoreU(sums[i], d, to + i * lanes); });
  if (count >= lanes)
    hn::StoreU(sums[N - 1], d, to + (N - 1) * lanes);
  else
    hn::BlendedStore(sums[N - 1], hn::FirstN(d, static_cast<size_t>(count)), d, to + (N - 1) * lanes);
}

// Adds column Column of the kernel and those after it to N blocks of one_line.
template <int N, int Rows, int Columns, int Column = 0>
HWY_INLINE void add_columns(const DepthwiseLayout& l, const float* from, int64_t block,
                            const V (&weights)[kMostWeights], V (&sums)[N]) {
  if constexpr (Column < Columns) {
    const Floats d;
    const int64_t lanes = lanes_of_floats(), step = l.offsets[Columns] - l.offsets[0];
    const float* first = from + l.offsets[Column];
    if (l.plain[Column]) {
      unrolled<Rows * N>([&](auto k) HWY_ATTR {
        const V value = hn::LoadU(d, first + k / N * step + k % N * lanes);
        sums[k % N] = hn::MulAdd(value, weights[k / N * Columns + Column], sums[k % N]);
      });
    } else {
      hn::Mask<Floats> masks[N];
      const uint8_t* bits = l.mask(Column, block);
      unrolled<N>([&](auto i) HWY_ATTR { masks[i] = hn::LoadMaskBits(d, bits + i * l.mask_bytes); });
      unrolled<Rows * N>([&](auto k) HWY_ATTR {
        const V value = hn::LoadU(d, first + k / N * step + k % N * lanes);
        const V sum = hn::MulAdd(value, weights[k / N * Columns + Column], sums[k % N]);
        sums[k % N] = hn::IfThenElse(masks[k % N], sum, sums[k % N]);
      });
    }
    add_columns<N, Rows, Columns, Column + 1>(l, from, block, weights, sums);
  }
}

// The blocks [block, end) of a line by a kernel of Rows by Columns. `from`: what the first result reads first.
template <int Rows, int Columns>
HWY_NOINLINE void blocks_of_line(const DepthwisePlane& p, const float* from, int64_t block, int64_t end) {
  const Floats d;
  const DepthwiseLayout& l = *p.layout;
  const int64_t lanes = lanes_of_floats();
  V weights[kMostWeights];
  unrolled<Rows * Columns>([&](auto k) HWY_ATTR { weights[k] = hn::Set(d, p.w[k]); });
  for (; block + 4 <= end; block += 4, from += 4 * lanes) {
    V sums[4];
    unrolled<4>([&](auto i) HWY_ATTR { sums[i] = hn::Zero(d); });
    add_columns<4, Rows, Columns>(l, from, block, weights, sums);
    store_blocks(p, block, sums);
  }
  for (; block < end; ++block, from += lanes) {
    V sums[1] = {hn::Zero(d)};
    add_columns<1, Rows, Columns>(l, from, block, weights, sums);
    store_blocks(p, block, sums);
  }
}

// A line by a kernel of Rows by Columns.
template <int Rows, int Columns>
void plane_in_one_line(const DepthwisePlane& p) {
  const DepthwiseLayout& l = *p.layout;
  const int64_t lanes = lanes_of_floats(), size = l.windows.image(), reach = l.offsets[Rows * Columns - 1];
  // The blocks between them read the plane alone.
  const int64_t front = (l.before + lanes - 1) / lanes, back = std::min(l.length, size + l.before - reach) / lanes;
  const int64_t front_size = front * lanes + reach - l.before, back_begin = back * lanes - l.before;
  if (back < front + 4 || front_size > size || back_begin < 0)
    return blocks_of_line<Rows, Columns>(p, fill_copy(p), 0, l.blocks);
  copy_row(p.x, front_size, p.copy + l.before);
  blocks_of_line<Rows, Columns>(p, p.copy, 0, front);
  blocks_of_line<Rows, Columns>(p, p.x + (front * lanes - l.before), front, back);
  copy_row(p.x + back_begin, size - back_begin, p.copy + back * lanes);
  blocks_of_line<Rows, Columns>(p, p.copy + back * lanes, back, l.blocks);
}

// N blocks of a line by any kernel.
template <int N>
HWY_INLINE void blocks_by_any(const DepthwisePlane& p, const float* from, int64_t block) {
  const Floats d;
  const DepthwiseLayout& l = *p.layout;
  const int64_t lanes = lanes_of_floats(), columns = l.windows.kernel[1], taps = l.windows.taps();
  V sums[N];
  unrolled<N>([&](auto i) HWY_ATTR { sums[i] = hn::Zero(d); });
  for (int64_t kx = 0; kx < columns; ++kx) {
    hn::Mask<Floats> masks[N];
    const uint8_t* bits = l.mask(kx, block);
    unrolled<N>([&](auto i) HWY_ATTR { masks[i] = hn::LoadMaskBits(d, bits + i * l.mask_bytes); });
    for (int64_t k = kx; k < taps; k += columns) {
      const V weight = hn::Set(d, p.w[k]);
      const float* first = from + l.offsets[static_cast<size_t>(k)];
      unrolled<N>([&](auto i) HWY_ATTR {
        const V sum = hn::MulAdd(hn::LoadU(d, first + i * lanes), weight, sums[i]);
        sums[i] = hn::IfThenElse(masks[i], sum, sums[i]);
      });
    }
  }
  store_blocks(p, block, sums);
}

HWY_NOINLINE void plane_in_one_line_any(const DepthwisePlane& p) {
  const int64_t lanes = lanes_of_floats(), blocks = p.layout->blocks;
  const float* from = fill_copy(p);
  int64_t block = 0;
  for (; block + 4 <= blocks; block += 4) blocks_by_any<4>(p, from + block * lanes, block);
  for (; block < blocks; ++block) blocks_by_any<1>(p, from + block * lanes, block);
}

// Row by row. Taps: of the kernel; 0: any.
template <int Taps>
HWY_NOINLINE void plane_by_rows(const DepthwisePlane& p) {
  const Floats d;
  const DepthwiseLayout& l = *p.layout;
  const int64_t lanes = lanes_of_floats(), taps = l.windows.taps();
  const float* from = fill_copy(p);
  V weights[kMostWeights];
  int64_t offsets[kMostWeights];
  unrolled<Taps>([&](auto k) HWY_ATTR {
    weights[k] = hn::Set(d, p.w[k]);
    offsets[k] = l.offsets[k];
  });
  for (int64_t row = 0; row < l.rows; ++row, from += l.row_step)
    for (int64_t block = 0; block < l.blocks; ++block) {
      const float* first = from + block * lanes;
      V sum = hn::Zero(d);
      if constexpr (Taps > 0)
        unrolled<Taps>([&](auto k) HWY_ATTR { sum = hn::MulAdd(hn::LoadU(d, first + offsets[k]), weights[k], sum); });
      else
        for (int64_t k = 0; k < taps; ++k)
          sum = hn::MulAdd(hn::LoadU(d, first + l.offsets[static_cast<size_t>(k)]), hn::Set(d, p.w[k]), sum);
      store_block(p, p.y + row * l.length, block, sum);
    }
}

void plane(const DepthwisePlane& p) {
  const Windows& v = p.layout->windows;
  const bool three = v.kernel[0] == 3 && v.kernel[1] == 3;
#if HWY_TARGET != HWY_SCALAR
  if (p.layout->in_place) return plane_in_place<2>(p);
#endif
  if (p.layout->one_line) return three ? plane_in_one_line<3, 3>(p) : plane_in_one_line_any(p);
  return three ? plane_by_rows<9>(p) : plane_by_rows<0>(p);
}

void fill_depthwise(DepthwiseTable& t) { t = {lanes_of_floats(), plane}; }

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_depthwise);

namespace {

constexpr int64_t kPieceWork = int64_t{1} << 18;  // multiply-adds of a piece: about 20 microseconds
constexpr int64_t kMostTaps = 64;
constexpr int64_t kMostElements = int64_t{1} << 17;  // of a copy that stays in the cache

const DepthwiseTable& table() {
  return chosen_table<DepthwiseTable>([](DepthwiseTable& t) { HWY_DYNAMIC_DISPATCH(fill_depthwise)(t); });
}

}  // namespace

bool depthwise_conv2d(const bp_frame* frame, const Convolution& c, const float* x, const float* w, float* y,
                      const ConvTail& tail) {
  const Windows& v = c.windows;
  if (c.channels != 1 || c.groups == 1 || v.stride[0] > 2 || v.stride[0] != v.stride[1] || v.taps() > kMostTaps)
    return false;
  if (std::max({v.padding[0], v.padding[1], v.dilation[0], v.dilation[1]}) > kMostTaps) return false;
  if (v.image() > kMostElements) return false;
  const DepthwiseTable& t = table();
  const DepthwiseLayout layout = depthwise_layout(v, t.lanes);
  const int64_t elements = layout.size + 2 * layout.half;
  const int64_t planes = c.images * c.groups * c.filters, channels = c.groups * c.filters;
  const auto range = [&](int64_t begin, int64_t last) {
    const Scratch<float> copy(elements);
    std::fill_n(copy.get(), elements, 0.0f);
    for (int64_t i = begin; i < last; ++i)
      t.plane({&layout, x + i / c.filters * v.image(), w + i % channels * v.taps(), y + i * v.outputs(), copy.get(), x,
               x + c.images * c.groups * v.image(), i % channels, &tail});
  };
  const int64_t grain = std::max<int64_t>(kPieceWork / std::max<int64_t>(v.taps() * v.outputs(), 1), 1);
  if (planes <= grain)
    range(0, planes);
  else
    plugin::parallel_for(frame, 0, planes, grain, range);
  return true;
}

}  // namespace backplane::cpu
#endif
