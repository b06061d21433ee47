// See pointwise_conv2d.hpp.
//
// A block of results is M filters by V vectors of pixels, all in registers. A panel is the V vectors of all channels:
// it is copied together, stays in the innermost cache, and serves all filters. A vector that would cross the end of the
// image is moved back over its neighbour and computes those pixels twice, so it needs no masks.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/pointwise_conv2d.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>

#include "kernels/nn/conv_tail-inl.hpp"
#include "kernels/nn/pointwise_conv2d.hpp"
#include "runtime/scratch.hpp"
#include "simd/chosen_table.hpp"
#include "simd/unrolled-inl.hpp"

#ifndef BACKPLANE_CPU_POINTWISE_CONV2D
#define BACKPLANE_CPU_POINTWISE_CONV2D
namespace backplane::cpu {

// Some filters of an image over some of its pixels.
struct PointwisePart {
  const float *x, *w;  // of the image (channels, pixels); of the first filter (filters, channels)
  float* y;            // of the first filter (filters, pixels)
  int64_t channels, pixels, filters;
  int64_t first_filter;  // among the tail's channels
  int64_t column, vectors;
  float* panel;  // channels times `vectors` vectors
  const ConvTail* tail;
};

struct PointwiseTable {
  int64_t lanes, widest;  // vectors of a panel
  void (*part)(const PointwisePart&);
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

// Filters of a block of V vectors: sums, a row of the panel and a weight fit into the registers.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
constexpr int kBlockFilters[] = {0, 8, 6, 4};
#else
constexpr int kBlockFilters[] = {0, 14, 12, 8};
#endif
constexpr int kWidestPanel = 3;

template <int M, int V>
HWY_NOINLINE void block(const PointwisePart& p, int64_t filter, int64_t last) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<Floats> sums[M][V];
  const float* weights[M];
  unrolled<M>([&](auto i) HWY_ATTR {
    weights[i] = p.w + (filter + i) * p.channels;
    unrolled<V>([&](auto v) HWY_ATTR { sums[i][v] = hn::Zero(d); });
  });
  const float* row = p.panel;
  for (int64_t k = 0; k < p.channels; ++k, row += V * lanes) {
    hn::Vec<Floats> right[V];
    unrolled<V>([&](auto v) HWY_ATTR { right[v] = hn::LoadU(d, row + v * lanes); });
    unrolled<M>([&](auto i) HWY_ATTR {
      const auto weight = hn::Set(d, weights[i][k]);
      unrolled<V>([&](auto v) HWY_ATTR { sums[i][v] = hn::MulAdd(weight, right[v], sums[i][v]); });
    });
  }
  float* y = p.y + filter * p.pixels + p.column;
  unrolled<M>([&](auto i) HWY_ATTR {
    apply_tail(*p.tail, p.first_filter + filter + i, d, sums[i]);
    unrolled<V>([&](auto v) HWY_ATTR { hn::StoreU(sums[i][v], d, y + (v + 1 == V ? last : v * lanes)); });
    y += p.pixels;
  });
}

template <int M, int V>
HWY_INLINE void block_of_filters(const PointwisePart& p, int64_t filters, int64_t filter, int64_t last) {
  if (filters == M) return block<M, V>(p, filter, last);
  if constexpr (M > 1) block_of_filters<M - 1, V>(p, filters, filter, last);
}

template <int V>
void panel(const PointwisePart& p) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t last = std::min((V - 1) * lanes, p.pixels - lanes - p.column);
  const float* row = p.x + p.column;
  float* to = p.panel;
  for (int64_t k = 0; k < p.channels; ++k, row += p.pixels, to += V * lanes)
    unrolled<V>([&](auto v)
                    HWY_ATTR { hn::StoreU(hn::LoadU(d, row + (v + 1 == V ? last : v * lanes)), d, to + v * lanes); });
  constexpr int kMost = kBlockFilters[V];
  const int64_t blocks = (p.filters + kMost - 1) / kMost;
  for (int64_t i = 0, filter = 0; i < blocks; ++i) {
    const int64_t filters = (p.filters - filter + blocks - i - 1) / (blocks - i);
    block_of_filters<kMost, V>(p, filters, filter, last);
    filter += filters;
  }
}

void part(const PointwisePart& p) {
  if (p.vectors == 1) panel<1>(p);
  if (p.vectors == 2) panel<2>(p);
  if (p.vectors == 3) panel<3>(p);
}

void fill_pointwise(PointwiseTable& t) { t = {static_cast<int64_t>(hn::Lanes(Floats())), kWidestPanel, part}; }

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_pointwise);

namespace {

constexpr int64_t kPieceWork = int64_t{1} << 20;  // multiply-adds of a piece: about 20 microseconds
constexpr int64_t kMostChannels = 1024;           // of a panel that stays in the cache
constexpr int64_t kSliceFilters = 16;             // fewer do not pay for the copy of a panel
// Beyond, a panel's rows lie on more pages than the processor remembers: 32 to 32 channels of 512 by 512 take 1.4 of
// the time of a product by OpenBLAS or oneDNN, on one thread of a Xeon (AVX-512).
constexpr int64_t kMostPixels = 8192;

const PointwiseTable& table() {
  return chosen_table<PointwiseTable>([](PointwiseTable& t) { HWY_DYNAMIC_DISPATCH(fill_pointwise)(t); });
}

}  // namespace

bool pointwise_conv2d(const bp_frame* frame, const Convolution& c, const float* x, const float* w, float* y,
                      const ConvTail& tail) {
  const PointwiseTable& t = table();
  const int64_t pixels = c.windows.outputs();
  if (!c.pointwise() || pixels < t.lanes || pixels > kMostPixels) return false;
  if (c.channels > kMostChannels || c.filters < kSliceFilters) return false;
  // Panels of about equal width.
  const int64_t vectors = (pixels + t.lanes - 1) / t.lanes, panels = (vectors + t.widest - 1) / t.widest;
  const int64_t units = c.images * c.groups * panels;
  int64_t slices = 1;
  while (units * slices < 4 * frame->host->worker_count() && c.filters >= 2 * slices * kSliceFilters &&
         c.work() / (panels * slices) > kPieceWork / 8)
    slices *= 2;
  const auto range = [&](int64_t begin, int64_t end) {
    const Scratch<float> panel(c.channels * t.widest * t.lanes);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t unit = i / slices, slice = i % slices, image = unit / panels, at = unit % panels;
      const int64_t first = c.filters * slice / slices, last = c.filters * (slice + 1) / slices;
      const int64_t from = vectors * at / panels, to = vectors * (at + 1) / panels, group = image % c.groups;
      t.part({x + image * c.image_size(), w + group * c.kernel_size() + first * c.channels,
              y + image * c.result_size() + first * pixels, c.channels, pixels, last - first, group * c.filters + first,
              from * t.lanes, to - from, panel.get(), &tail});
    }
  };
  const int64_t count = units * slices;
  const int64_t grain = std::max<int64_t>(kPieceWork / std::max<int64_t>(c.work() / (panels * slices), 1), 1);
  if (count <= grain)
    range(0, count);
  else
    plugin::parallel_for(frame, 0, count, grain, range);
  return true;
}

}  // namespace backplane::cpu
#endif
