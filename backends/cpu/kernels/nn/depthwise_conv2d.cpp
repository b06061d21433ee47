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
#include "kernels/nn/depthwise_layout.hpp"
#include "loops/elementwise.hpp"
#include "runtime/scratch.hpp"
#include "simd/chosen_table.hpp"
#include "simd/unrolled-inl.hpp"

#ifndef BACKPLANE_CPU_DEPTHWISE_CONV2D
#define BACKPLANE_CPU_DEPTHWISE_CONV2D
namespace backplane::cpu {

struct DepthwisePlane {
  const DepthwiseLayout* layout;
  const float *x, *w;
  float* y;
  float* copy;               // zeros, but for the previous plane
  const float *begin, *end;  // of x
  int64_t channel;           // of the tail
  const ConvTail* tail;
};

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

using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;
constexpr int kMostWeights = 9;  // that stay in registers
HWY_INLINE int64_t lanes_of_floats() { return static_cast<int64_t>(hn::Lanes(Floats())); }

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
  const int64_t lanes = lanes_of_floats(), whole = std::min(end, l.length / lanes);
  V weights[kMostWeights];
  unrolled<Rows * Columns>([&](auto k) HWY_ATTR { weights[k] = hn::Set(d, p.w[k]); });
  for (; block + 4 <= whole; block += 4, from += 4 * lanes) {
    V sums[4];
    unrolled<4>([&](auto i) HWY_ATTR { sums[i] = hn::Zero(d); });
    add_columns<4, Rows, Columns>(l, from, block, weights, sums);
    apply_tail(*p.tail, p.channel, d, sums);
    unrolled<4>([&](auto i) HWY_ATTR { hn::StoreU(sums[i], d, p.y + (block + i) * lanes); });
  }
  for (; block < end; ++block, from += lanes) {
    V sums[1] = {hn::Zero(d)};
    add_columns<1, Rows, Columns>(l, from, block, weights, sums);
    store_block(p, p.y, block, sums[0]);
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

// A line by any kernel.
HWY_NOINLINE void plane_in_one_line_any(const DepthwisePlane& p) {
  const Floats d;
  const DepthwiseLayout& l = *p.layout;
  const int64_t lanes = lanes_of_floats();
  const float* from = fill_copy(p);
  for (int64_t block = 0; block < l.blocks; ++block) {
    V sum = hn::Zero(d);
    for (int64_t kx = 0; kx < l.windows.kernel[1]; ++kx) {
      const auto mask = hn::LoadMaskBits(d, l.mask(kx, block));
      for (int64_t k = kx; k < l.windows.taps(); k += l.windows.kernel[1])
        sum = hn::MulAdd(hn::MaskedLoad(mask, d, from + block * lanes + l.offsets[static_cast<size_t>(k)]),
                         hn::Set(d, p.w[k]), sum);
    }
    store_block(p, p.y, block, sum);
  }
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

#if HWY_TARGET != HWY_SCALAR
using Masks = hn::Mask<Floats>[3];  // per column of a kernel of 3

// What the columns read of one row of the image, for a block of results.
struct Taps {
  V first, second, third;
};

template <bool Masked>
HWY_INLINE Taps load_taps(const float* from, const Masks& masks) {
  const Floats d;
  const int64_t lanes = lanes_of_floats();
  const V low = hn::LoadU(d, from), high = hn::LoadU(d, from + lanes);
  const V first = hn::ConcatEven(d, high, low), second = hn::ConcatOdd(d, high, low);
  const V third = hn::ConcatEven(d, hn::LoadU(d, from + 2 + lanes), hn::LoadU(d, from + 2));
  if constexpr (Masked)
    return {hn::IfThenElseZero(masks[0], first), hn::IfThenElseZero(masks[1], second),
            hn::IfThenElseZero(masks[2], third)};
  return {first, second, third};
}

HWY_INLINE V add_taps(const Taps& taps, const V* w, V sum) {
  return hn::MulAdd(taps.third, w[2], hn::MulAdd(taps.second, w[1], hn::MulAdd(taps.first, w[0], sum)));
}

// What a plane's blocks share.
struct InPlace {
  V w[kMostWeights];
  ChannelTail<Floats> tail;
  int64_t width, length;
};

// A block of Rows rows of results, all of whose rows are inside the image.
template <int Rows, bool Masked>
HWY_INLINE void block_of_rows(const InPlace& s, const V (&w)[kMostWeights], const ChannelTail<Floats>& tail,
                              const Masks& masks, const float* from, float* to) {
  const Floats d;
  V sums[Rows];
  unrolled<Rows>([&](auto r) HWY_ATTR { sums[r] = hn::Zero(d); });
  unrolled<(Rows - 1) * 2 + 3>([&](auto k) HWY_ATTR {
    const Taps taps = load_taps<Masked>(from + k * s.width, masks);
    unrolled<Rows>([&](auto r) HWY_ATTR {
      constexpr int kRow = decltype(k)::value - decltype(r)::value * 2;
      if constexpr (kRow >= 0 && kRow < 3) sums[r] = add_taps(taps, w + 3 * kRow, sums[r]);
    });
  });
  tail.apply(d, sums);
  unrolled<Rows>([&](auto r) HWY_ATTR { hn::StoreU(sums[r], d, to + r * s.length); });
}

HWY_INLINE void load_masks(const DepthwiseLayout& l, int64_t block, Masks& masks) {
  const Floats d;
  const uint8_t* bits = l.masks.data() + block * l.mask_bytes;
  unrolled<3>([&](auto kx) HWY_ATTR { masks[kx] = hn::LoadMaskBits(d, bits + kx * l.mask_step); });
}

// The blocks [begin, end) of Rows rows.
template <int Rows, bool Masked>
HWY_NOINLINE void blocks_of_rows(const DepthwiseLayout& l, const InPlace& s, int64_t begin, int64_t end,
                                 const float* from, float* to) {
  const int64_t lanes = lanes_of_floats();
  V w[kMostWeights];
  unrolled<kMostWeights>([&](auto k) HWY_ATTR { w[k] = s.w[k]; });
  const ChannelTail<Floats> tail = s.tail;
  for (int64_t block = begin; block < end; ++block) {
    const int64_t at = std::min(block * lanes, s.length - lanes);
    Masks masks;
    if constexpr (Masked) load_masks(l, block, masks);
    block_of_rows<Rows, Masked>(s, w, tail, masks, from + 2 * at, to + at);
  }
}

// A block of a row at the plane's edge: rows outside the image are left out, and nothing outside of x is read.
HWY_INLINE void edge_block(const DepthwisePlane& p, const InPlace& s, const Masks& masks, int64_t y, const float* from,
                           float* to) {
  const Floats d;
  constexpr size_t kReads = 2 * HWY_MAX_BYTES / sizeof(float) + 2;
  const auto reads = 2 * lanes_of_floats() + 2;
  V sums[1] = {hn::Zero(d)};
  for (int64_t k = 0; k < 3; ++k, from += s.width) {
    if (y + k < 0 || y + k >= p.layout->windows.height) continue;
    if (from >= p.begin && from + reads <= p.end) {
      sums[0] = add_taps(load_taps<true>(from, masks), s.w + 3 * k, sums[0]);
    } else {
      float copy[kReads] = {};
      const int64_t before = std::max<int64_t>(p.begin - from, 0), end = std::min<int64_t>(p.end - from, reads);
      std::copy(from + before, from + end, copy + before);
      sums[0] = add_taps(load_taps<true>(copy, masks), s.w + 3 * k, sums[0]);
    }
  }
  s.tail.apply(d, sums);
  hn::StoreU(sums[0], d, to);
}

// By a kernel of 3 by 3, with rows of a vector or more. Several rows at once, so that what they share is read once.
template <int Rows>
HWY_NOINLINE void plane_in_place(const DepthwisePlane& p) {
  const Floats d;
  const DepthwiseLayout& l = *p.layout;
  const Windows& v = l.windows;
  const int64_t lanes = lanes_of_floats();
  InPlace s{{}, {*p.tail, p.channel, d}, v.width, v.out_width};
  unrolled<kMostWeights>([&](auto k) HWY_ATTR { s.w[k] = hn::Set(d, p.w[k]); });
  for (int64_t row = 0; row < v.out_height;) {
    const int64_t y = 2 * row - v.padding[0];
    // Vectors read a little of the rows before and behind too.
    const bool inner = row + Rows <= v.out_height && y > 0 && y + (Rows - 1) * 2 + 3 < v.height;
    const float* from = p.x + y * s.width - v.padding[1];
    float* to = p.y + row * s.length;
    if (inner) {
      blocks_of_rows<Rows, true>(l, s, 0, l.plain_begin, from, to);
      blocks_of_rows<Rows, false>(l, s, l.plain_begin, l.plain_end, from, to);
      blocks_of_rows<Rows, true>(l, s, l.plain_end, l.blocks, from, to);
    }
    for (int64_t block = 0; !inner && block < l.blocks; ++block) {
      const int64_t at = std::min(block * lanes, s.length - lanes);
      Masks masks;
      load_masks(l, block, masks);
      edge_block(p, s, masks, y, from + 2 * at, to + at);
    }
    row += inner ? Rows : 1;
  }
}
#endif

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
