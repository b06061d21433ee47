// See moment_loops.hpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduction/moment_loops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <tuple>

#include "kernels/reduction/moment_loops.hpp"
#include "simd/chosen_table.hpp"
#include "simd/half_vectors-inl.hpp"

#ifndef BACKPLANE_CPU_MOMENT_LOOPS
#define BACKPLANE_CPU_MOMENT_LOOPS
namespace backplane::cpu {
using MomentTable =
    std::tuple<MomentLoops<plugin::float16>, MomentLoops<plugin::bfloat16>, MomentLoops<float>, MomentLoops<double>>;
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

template <class S>
using C = plugin::Compute<S>;
template <class D>
HWY_INLINE double total(D d, hn::Vec<D> v) {
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, v)));
}

// Blocks of at most 16 additions to each of four vectors.
template <class S>
Distances distances(const S* x, C<S> shift, int64_t n) {
  const hn::ScalableTag<C<S>> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto offset = hn::Set(d, shift);
  const int64_t block = 64 * step;
  Distances all{0, 0};
  int64_t i = 0;
  for (int64_t at = 0; at < n; at += block) {
    const int64_t end = std::min(n, at + block);
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, q0 = s0, q1 = s0, q2 = s0, q3 = s0;
    const auto take = [&](auto& s, auto& q, auto v) HWY_ATTR {
      const auto distance = hn::Sub(v, offset);
      s = hn::Add(s, distance);
      q = hn::MulAdd(distance, distance, q);
    };
    for (; i + 4 * step <= end; i += 4 * step) {
      hn::Vec<decltype(d)> v0, v1, v2, v3;
      widen_pair(d, x + i, v0, v1), widen_pair(d, x + i + 2 * step, v2, v3);
      take(s0, q0, v0), take(s1, q1, v1);
      take(s2, q2, v2), take(s3, q3, v3);
    }
    for (; i + step <= end; i += step) take(s0, q0, widen(d, x + i));
    all += {total(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))), total(d, hn::Add(hn::Add(q0, q1), hn::Add(q2, q3)))};
  }
  for (; i < n; ++i) {
    const double distance = static_cast<double>(static_cast<C<S>>(x[i])) - static_cast<double>(shift);
    all += {distance, distance * distance};
  }
  return all;
}

// Rows [0, 4) or [0, 1) of a strip, added to one vector of sums and one of squares.
template <int Rows, class S>
HWY_INLINE void add_rows(const S* x, const C<S>* shifts, int64_t stride, int64_t width, C<S>* sums, C<S>* squares) {
  const hn::ScalableTag<C<S>> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + step <= width; j += step) {
    const auto shift = hn::LoadU(d, shifts + j);
    auto s = hn::LoadU(d, sums + j), q = hn::LoadU(d, squares + j);
    if constexpr (Rows == 4) {
      const auto a = hn::Sub(widen(d, x + j), shift), b = hn::Sub(widen(d, x + stride + j), shift);
      const auto c = hn::Sub(widen(d, x + 2 * stride + j), shift), e = hn::Sub(widen(d, x + 3 * stride + j), shift);
      s = hn::Add(s, hn::Add(hn::Add(a, b), hn::Add(c, e)));
      q = hn::Add(q, hn::Add(hn::MulAdd(a, a, hn::Mul(b, b)), hn::MulAdd(c, c, hn::Mul(e, e))));
    } else {
      const auto a = hn::Sub(widen(d, x + j), shift);
      s = hn::Add(s, a);
      q = hn::MulAdd(a, a, q);
    }
    hn::StoreU(s, d, sums + j);
    hn::StoreU(q, d, squares + j);
  }
  for (; j < width; ++j)
    for (int row = 0; row < Rows; ++row) {
      const C<S> distance = static_cast<C<S>>(x[row * stride + j]) - shifts[j];
      sums[j] += distance;
      squares[j] += distance * distance;
    }
}

template <class S>
void distances_strip(const S* x, const C<S>* shifts, int64_t n, int64_t stride, int64_t width, double* sums,
                     double* squares) {
  constexpr int64_t kBlock = 64;  // rows added in the computing type
  HWY_ALIGN C<S> s[kMomentStrip], q[kMomentStrip];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t end = std::min(n, at + kBlock);
    std::fill_n(s, width, C<S>(0));
    std::fill_n(q, width, C<S>(0));
    int64_t i = at;
    for (; i + 4 <= end; i += 4) add_rows<4>(x + i * stride, shifts, stride, width, s, q);
    for (; i < end; ++i) add_rows<1>(x + i * stride, shifts, stride, width, s, q);
    for (int64_t j = 0; j < width; ++j) {
      sums[j] += static_cast<double>(s[j]);
      squares[j] += static_cast<double>(q[j]);
    }
  }
}

// out[i] = f(d, x's vector, i) vector by vector, then f_one(x[i], i); in pairs, in the order of widen_pair.
template <class S, class F, class One>
HWY_INLINE void map_row(const S* x, S* out, int64_t n, F&& f, One&& f_one) {
  const hn::ScalableTag<C<S>> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    hn::Vec<decltype(d)> a, b;
    widen_pair(d, x + i, a, b);
    narrow_pair(d, f(d, a, i), f(d, b, i + step), out + i);
  }
  for (; i < n; ++i) out[i] = static_cast<S>(f_one(static_cast<C<S>>(x[i]), i));
}
template <class S>
void widen_in_pairs(const S* x, C<S>* out, int64_t n) {
  const hn::ScalableTag<C<S>> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    hn::Vec<decltype(d)> a, b;
    widen_pair(d, x + i, a, b);
    narrow_pair(d, a, b, out + i);
  }
  for (; i < n; ++i) out[i] = static_cast<C<S>>(x[i]);
}

template <bool Weight, bool Bias, class S>
void normalize_with(const S* x, C<S> shift, C<S> scale, const C<S>* weight, const C<S>* bias, S* out, int64_t n) {
  const hn::ScalableTag<C<S>> tag;
  const auto offset = hn::Set(tag, shift), factor = hn::Set(tag, scale);
  map_row(
      x, out, n,
      [&](auto d, auto v, int64_t i) HWY_ATTR {
        auto y = hn::Mul(hn::Sub(v, offset), factor);
        if constexpr (Weight) y = hn::Mul(y, hn::LoadU(d, weight + i));
        if constexpr (Bias) y = hn::Add(y, hn::LoadU(d, bias + i));
        return y;
      },
      [&](C<S> v, int64_t i) HWY_ATTR {
        C<S> y = (v - shift) * scale;
        if constexpr (Weight) y *= weight[i];
        if constexpr (Bias) y += bias[i];
        return y;
      });
}
template <class S>
void normalize(const S* x, C<S> shift, C<S> scale, const C<S>* weight, const C<S>* bias, S* out, int64_t n) {
  const auto function = weight != nullptr
                            ? (bias != nullptr ? normalize_with<true, true, S> : normalize_with<true, false, S>)
                            : (bias != nullptr ? normalize_with<false, true, S> : normalize_with<false, false, S>);
  function(x, shift, scale, weight, bias, out, n);
}

template <class S>
void normalize_channel(const S* x, C<S> shift, C<S> scale, C<S> offset, S* out, int64_t n) {
  const hn::ScalableTag<C<S>> tag;
  const auto a = hn::Set(tag, shift), b = hn::Set(tag, scale), c = hn::Set(tag, offset);
  map_row(
      x, out, n, [&](auto, auto v, int64_t) HWY_ATTR { return hn::MulAdd(hn::Sub(v, a), b, c); },
      [&](C<S> v, int64_t) HWY_ATTR { return (v - shift) * scale + offset; });
}
template <class S>
void normalize_lanes(const S* x, const C<S>* shifts, const C<S>* scales, const C<S>* offsets, S* out, int64_t n) {
  const hn::ScalableTag<C<S>> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto at = [&](int64_t i) HWY_ATTR {
    const auto distance = hn::Sub(widen(d, x + i), hn::LoadU(d, shifts + i));
    return hn::MulAdd(distance, hn::LoadU(d, scales + i), hn::LoadU(d, offsets + i));
  };
  int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) narrow_two(d, at(i), at(i + step), out + i);
  for (; i + step <= n; i += step) narrow(d, at(i), out + i);
  for (; i < n; ++i) out[i] = static_cast<S>((static_cast<C<S>>(x[i]) - shifts[i]) * scales[i] + offsets[i]);
}

template <class S>
void fill_one(MomentLoops<S>& t) {
  t = {distances<S>, distances_strip<S>, normalize<S>, normalize_channel<S>, normalize_lanes<S>, widen_in_pairs<S>};
}
void fill_moment_loops(MomentTable& t) {
  std::apply([](auto&... each) { (fill_one(each), ...); }, t);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_moment_loops);

template <class S>
const MomentLoops<S>& moment_loops() {
  return std::get<MomentLoops<S>>(chosen_table<MomentTable>([](MomentTable& t) {
    HWY_DYNAMIC_DISPATCH(fill_moment_loops)(t);
  }));
}
template const MomentLoops<plugin::float16>& moment_loops<plugin::float16>();
template const MomentLoops<plugin::bfloat16>& moment_loops<plugin::bfloat16>();
template const MomentLoops<float>& moment_loops<float>();
template const MomentLoops<double>& moment_loops<double>();

}  // namespace backplane::cpu
#endif
