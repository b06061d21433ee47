// Depthwise convolution by strides of 2 and kernels of 3 by 3 that reads wide rows where they lie; included once per
// Highway target. Vectors read a little of the planes before and behind too; masks leave that out.
#if defined(BACKPLANE_CPU_DEPTHWISE_IN_PLACE) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_DEPTHWISE_IN_PLACE
#undef BACKPLANE_CPU_DEPTHWISE_IN_PLACE
#else
#define BACKPLANE_CPU_DEPTHWISE_IN_PLACE
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "kernels/nn/conv_tail-inl.hpp"
#include "kernels/nn/depthwise_layout.hpp"
#include "simd/unrolled-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;
constexpr int kMostWeights = 9;  // that stay in registers
HWY_INLINE int64_t lanes_of_floats() { return static_cast<int64_t>(hn::Lanes(Floats())); }

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

// A block of Rows rows of results, which read only rows inside the image.
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

// By a kernel of 3 by 3, with rows of a vector or more. Several rows at once: their shared rows are read once.
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

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#endif
