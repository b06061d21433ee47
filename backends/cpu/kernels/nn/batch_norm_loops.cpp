// See batch_norm_loops.hpp. A lane adds no more than kChain elements before they are taken into double.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/batch_norm_loops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <tuple>

#include "kernels/nn/batch_norm_loops.hpp"
#include "simd/chosen_table.hpp"
#include "simd/half_vectors-inl.hpp"

#ifndef BACKPLANE_CPU_BATCH_NORM_LOOPS
#define BACKPLANE_CPU_BATCH_NORM_LOOPS
namespace backplane::cpu {
using BatchNormTable = std::tuple<BatchNormLoops<plugin::float16>, BatchNormLoops<plugin::bfloat16>,
                                  BatchNormLoops<float>, BatchNormLoops<double>>;
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class S>
using C = plugin::Compute<S>;
constexpr int64_t kChain = 64;

template <class S>
GradSums sums(const ChannelRows<S>& rows, C<S> mean) {
  const hn::ScalableTag<C<S>> d;
  using V = hn::Vec<decltype(d)>;
  const auto step = static_cast<int64_t>(2 * hn::Lanes(d));
  const V shift = hn::Set(d, mean);
  GradSums all{0, 0};
  V g0 = hn::Zero(d), g1 = g0, gx0 = g0, gx1 = g0;
  int64_t chain = 0;
  const auto flush = [&] {
    all.g += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(g0, g1))));
    all.gx += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(gx0, gx1))));
    g0 = g1 = gx0 = gx1 = hn::Zero(d);
    chain = 0;
  };
  for (int64_t piece = 0; piece < rows.pieces; ++piece) {
    const S *g = rows.g + piece * rows.step, *x = rows.x + piece * rows.step;
    int64_t i = 0;
    for (; i + step <= rows.rest; i += step) {
      V a, b, u, v;
      widen_pair(d, g + i, a, b), widen_pair(d, x + i, u, v);
      g0 = hn::Add(g0, a), g1 = hn::Add(g1, b);
      gx0 = hn::MulAdd(a, hn::Sub(u, shift), gx0), gx1 = hn::MulAdd(b, hn::Sub(v, shift), gx1);
      if (++chain == kChain) flush();
    }
    for (; i < rows.rest; ++i) {
      const auto one = static_cast<C<S>>(g[i]);
      all.g += static_cast<double>(one);
      all.gx += static_cast<double>(one * (static_cast<C<S>>(x[i]) - mean));
    }
  }
  flush();
  return all;
}

template <class S>
void combine(const ChannelRows<S>& rows, C<S> mean, C<S> a, C<S> b, C<S> c, S* out) {
  const hn::ScalableTag<C<S>> d;
  using V = hn::Vec<decltype(d)>;
  const auto step = static_cast<int64_t>(2 * hn::Lanes(d));
  const V shift = hn::Set(d, mean), of_g = hn::Set(d, a), of_x = hn::Set(d, b), constant = hn::Set(d, c);
  const auto f = [&](V g, V x) HWY_ATTR { return hn::MulAdd(of_g, g, hn::MulAdd(of_x, hn::Sub(x, shift), constant)); };
  for (int64_t piece = 0; piece < rows.pieces; ++piece) {
    const S *g = rows.g + piece * rows.step, *x = rows.x + piece * rows.step;
    S* to = out + piece * rows.step;
    int64_t i = 0;
    for (; i + step <= rows.rest; i += step) {
      V g0, g1, x0, x1;
      widen_pair(d, g + i, g0, g1), widen_pair(d, x + i, x0, x1);
      narrow_pair(d, f(g0, x0), f(g1, x1), to + i);
    }
    for (; i < rows.rest; ++i) to[i] = S(a * static_cast<C<S>>(g[i]) + (b * (static_cast<C<S>>(x[i]) - mean) + c));
  }
}

template <class S>
void fill_one(BatchNormLoops<S>& t) {
  t = {sums<S>, combine<S>};
}
void fill_batch_norm(BatchNormTable& t) {
  std::apply([](auto&... each) { (fill_one(each), ...); }, t);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_batch_norm);

template <class S>
const BatchNormLoops<S>& batch_norm_loops() {
  return std::get<BatchNormLoops<S>>(chosen_table<BatchNormTable>([](BatchNormTable& t) {
    HWY_DYNAMIC_DISPATCH(fill_batch_norm)(t);
  }));
}
template const BatchNormLoops<plugin::float16>& batch_norm_loops<plugin::float16>();
template const BatchNormLoops<plugin::bfloat16>& batch_norm_loops<plugin::bfloat16>();
template const BatchNormLoops<float>& batch_norm_loops<float>();
template const BatchNormLoops<double>& batch_norm_loops<double>();

}  // namespace backplane::cpu
#endif
