// See batch_norm_loops.hpp. A lane adds no more than kChain elements before they are taken into double.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/batch_norm_loops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/batch_norm_loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kChain = 64;

template <class T>
GradSums sums(const ChannelRows<T>& rows, T mean) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, mean);
  GradSums all{0, 0};
  auto g_sum = hn::Zero(d), gx_sum = hn::Zero(d);
  int64_t chain = 0;
  const auto flush = [&] {
    all.g += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, g_sum)));
    all.gx += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, gx_sum)));
    g_sum = gx_sum = hn::Zero(d);
    chain = 0;
  };
  for (int64_t piece = 0; piece < rows.pieces; ++piece) {
    const T *g = rows.g + piece * rows.step, *x = rows.x + piece * rows.step;
    int64_t i = 0;
    for (; i + lanes <= rows.rest; i += lanes) {
      const auto v = hn::LoadU(d, g + i);
      g_sum = hn::Add(g_sum, v);
      gx_sum = hn::MulAdd(v, hn::Sub(hn::LoadU(d, x + i), shift), gx_sum);
      if (++chain == kChain) flush();
    }
    for (; i < rows.rest; ++i) {
      all.g += static_cast<double>(g[i]);
      all.gx += static_cast<double>(g[i] * (x[i] - mean));
    }
  }
  flush();
  return all;
}

template <class T>
void combine(const ChannelRows<T>& rows, T mean, T a, T b, T c, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, mean), of_g = hn::Set(d, a), of_x = hn::Set(d, b), constant = hn::Set(d, c);
  for (int64_t piece = 0; piece < rows.pieces; ++piece) {
    const T *g = rows.g + piece * rows.step, *x = rows.x + piece * rows.step;
    T* to = out + piece * rows.step;
    int64_t i = 0;
    for (; i + lanes <= rows.rest; i += lanes) {
      const auto moved = hn::MulAdd(of_x, hn::Sub(hn::LoadU(d, x + i), shift), constant);
      hn::StoreU(hn::MulAdd(of_g, hn::LoadU(d, g + i), moved), d, to + i);
    }
    for (; i < rows.rest; ++i) to[i] = a * g[i] + (b * (x[i] - mean) + c);
  }
}

const BatchNormLoops<float>* loops_f32() {
  static constexpr BatchNormLoops<float> loops{sums<float>, combine<float>};
  return &loops;
}
const BatchNormLoops<double>* loops_f64() {
  static constexpr BatchNormLoops<double> loops{sums<double>, combine<double>};
  return &loops;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(loops_f32);
HWY_EXPORT(loops_f64);

template <>
const BatchNormLoops<float>& batch_norm_loops<float>() {
  static const BatchNormLoops<float>& loops = *HWY_DYNAMIC_DISPATCH(loops_f32)();
  return loops;
}
template <>
const BatchNormLoops<double>& batch_norm_loops<double>() {
  static const BatchNormLoops<double>& loops = *HWY_DYNAMIC_DISPATCH(loops_f64)();
  return loops;
}

}  // namespace backplane::cpu
#endif
