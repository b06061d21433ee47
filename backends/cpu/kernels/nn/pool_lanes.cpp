// See pool_lanes.hpp. Windows that reach over the left or right edge, and those that fill no vector, go one by one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/pool_lanes.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/nn/pool_lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A window's part inside the image: rows and columns [top, bottom) and [left, right).
struct Part {
  int64_t top, bottom, left, right;
};

// The elements at row[0], row[stride], …, of tap `k` of `kernel`. Reads nothing that the windows do not hold.
template <class D>
HWY_INLINE hn::Vec<D> tap(D d, const float* row, int64_t k, int64_t kernel, int64_t stride) {
  if (stride == 1) return hn::LoadU(d, row + k);
  if (stride == 2 && kernel > 1) {
    hn::Vec<D> even, odd;
    const bool second = k % 2 != 0 || k == kernel - 1;
    hn::LoadInterleaved2(d, row + k - second, even, odd);
    return second ? odd : even;
  }
  const hn::RebindToSigned<D> di;
  const auto steps = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(stride)));
  return hn::GatherIndex(d, row + k, steps);
}

// With positions or without, which take as long as the maximum.
template <bool kPlaces>
struct Maximum {
  const Windows& w;
  const float* image;
  float* values;
  int64_t* indices;

  template <class D>
  HWY_INLINE void vector(D d, const Part& p, int64_t at) const {
    const hn::RebindToSigned<D> di;
    const int64_t stride = w.stride[1], kernel = w.kernel[1];
    const auto steps = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(stride)));
    auto best = tap(d, image + p.top * w.width + p.left, 0, kernel, stride);
    auto position = hn::Set(di, static_cast<int32_t>(p.top * w.width + p.left));
    for (int64_t row = p.top; row < p.bottom; ++row) {
      const float* from = image + row * w.width + p.left;
      for (int64_t k = 0; k < kernel; ++k) {
        const auto candidate = tap(d, from, k, kernel, stride);
        // Greater or NaN, where the best is a number.
        const auto takes = hn::And(hn::Not(hn::Le(candidate, best)), hn::Eq(best, best));
        best = hn::IfThenElse(takes, candidate, best);
        if constexpr (kPlaces)
          position = hn::IfThenElse(hn::RebindMask(di, takes),
                                    hn::Set(di, static_cast<int32_t>(row * w.width + p.left + k)), position);
      }
    }
    if (values != nullptr) hn::StoreU(best, d, values + at);
    if constexpr (!kPlaces) return;
    position = hn::Add(position, steps);
    HWY_ALIGN int32_t places[hn::MaxLanes(di)];
    hn::Store(position, di, places);
    for (size_t i = 0; i < hn::Lanes(d); ++i) indices[at + static_cast<int64_t>(i)] = places[i];
  }

  void scalar(const Part& p, int64_t at) const {
    float best = -std::numeric_limits<float>::infinity();
    int64_t position = std::min(p.top, w.height - 1) * w.width + std::min(p.left, w.width - 1);
    bool found = false;
    for (int64_t row = p.top; row < p.bottom; ++row)
      for (int64_t column = p.left; column < p.right; ++column) {
        const float candidate = image[row * w.width + column];
        if (!found || candidate > best || (candidate != candidate && best == best)) {
          best = candidate;
          position = row * w.width + column;
          found = true;
        }
      }
    if (values != nullptr) values[at] = best;
    if constexpr (kPlaces) indices[at] = position;
  }
};

struct Sum {
  const Windows& w;
  const float* image;
  float scale;
  float* out;

  template <class D>
  HWY_INLINE void vector(D d, const Part& p, int64_t at) const {
    auto sum = hn::Zero(d);
    for (int64_t row = p.top; row < p.bottom; ++row) {
      const float* from = image + row * w.width + p.left;
      for (int64_t k = 0; k < w.kernel[1]; ++k) sum = hn::Add(sum, tap(d, from, k, w.kernel[1], w.stride[1]));
    }
    hn::StoreU(hn::Mul(sum, hn::Set(d, scale)), d, out + at);
  }

  void scalar(const Part& p, int64_t at) const {
    float sum = 0;
    for (int64_t row = p.top; row < p.bottom; ++row)
      for (int64_t column = p.left; column < p.right; ++column) sum += image[row * w.width + column];
    out[at] = sum * scale;
  }
};

template <class Pool>
HWY_INLINE void pool_plane(const Windows& w, const Pool& pool) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 4> few;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), some = static_cast<int64_t>(hn::Lanes(few));
  // Windows [first, last) lie within the rows of the image.
  const int64_t first = std::min((w.padding[1] + w.stride[1] - 1) / w.stride[1], w.out_width);
  const int64_t room = w.width + w.padding[1] - w.kernel[1];
  const int64_t last = room < 0 ? first : std::clamp(room / w.stride[1] + 1, first, w.out_width);
  for (int64_t oy = 0; oy < w.out_height; ++oy) {
    const int64_t above = oy * w.stride[0] - w.padding[0];
    const int64_t top = std::max<int64_t>(above, 0), bottom = std::min(above + w.kernel[0], w.height);
    for (int64_t ox = 0; ox < w.out_width;) {
      const int64_t left = ox * w.stride[1] - w.padding[1], at = oy * w.out_width + ox;
      const Part part{top, bottom, std::max<int64_t>(left, 0), std::min(left + w.kernel[1], w.width)};
      if (ox >= first && ox + lanes <= last && top < bottom) {
        pool.vector(d, part, at);
        ox += lanes;
      } else if (ox >= first && ox + some <= last && top < bottom) {
        pool.vector(few, part, at);
        ox += some;
      } else {
        pool.scalar(part, at);
        ++ox;
      }
    }
  }
}

void max_plane(const Windows& w, const float* image, float* values, int64_t* indices) {
  if (indices == nullptr) return pool_plane(w, Maximum<false>{w, image, values, nullptr});
  pool_plane(w, Maximum<true>{w, image, values, indices});
}

// Rows of windows are added first, by vectors over the whole width: strides beyond 2 would gather.
void sum_rows(const Windows& w, const float* image, float scale, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  std::vector<float> sums(static_cast<size_t>(w.width));
  for (int64_t oy = 0; oy < w.out_height; ++oy) {
    const int64_t above = oy * w.stride[0] - w.padding[0];
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (int64_t row = std::max<int64_t>(above, 0); row < std::min(above + w.kernel[0], w.height); ++row) {
      const float* from = image + row * w.width;
      int64_t i = 0;
      for (; i + lanes <= w.width; i += lanes)
        hn::StoreU(hn::Add(hn::LoadU(d, &sums[static_cast<size_t>(i)]), hn::LoadU(d, from + i)), d,
                   &sums[static_cast<size_t>(i)]);
      for (; i < w.width; ++i) sums[static_cast<size_t>(i)] += from[i];
    }
    for (int64_t ox = 0; ox < w.out_width; ++ox) {
      const int64_t left = ox * w.stride[1] - w.padding[1];
      float sum = 0;
      for (int64_t i = std::max<int64_t>(left, 0); i < std::min(left + w.kernel[1], w.width); ++i)
        sum += sums[static_cast<size_t>(i)];
      out[oy * w.out_width + ox] = sum * scale;
    }
  }
}

void sum_plane(const Windows& w, const float* image, float scale, float* out) {
  if (w.stride[1] > 2) return sum_rows(w, image, scale, out);
  pool_plane(w, Sum{w, image, scale, out});
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(max_plane);
HWY_EXPORT(sum_plane);

void max_pool_lanes(const Windows& w, const float* image, float* values, int64_t* indices) {
  HWY_DYNAMIC_DISPATCH(max_plane)(w, image, values, indices);
}
void sum_pool_lanes(const Windows& w, const float* image, float scale, float* out) {
  HWY_DYNAMIC_DISPATCH(sum_plane)(w, image, scale, out);
}

}  // namespace backplane::cpu
#endif
