// A ConvTail over results that lie in memory, for ways of computing convolutions that do not apply it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/conv_tail.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/nn/conv_tail-inl.hpp"
#include "kernels/nn/conv_tail.hpp"
#include "loops/elementwise.hpp"
#include "simd/chosen_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void tail_row(const ConvTail& tail, int64_t channel, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::Vec<decltype(d)> values[1] = {hn::LoadU(d, y + i)};
    apply_tail(tail, channel, d, values);
    hn::StoreU(values[0], d, y + i);
  }
  for (; i < n; ++i) {
    const hn::CappedTag<float, 1> one;
    hn::Vec<decltype(one)> values[1] = {hn::LoadU(one, y + i)};
    apply_tail(tail, channel, one, values);
    hn::StoreU(values[0], one, y + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(tail_row);

void apply_tail(const bp_frame* frame, const ConvTail& tail, int64_t images, int64_t channels, int64_t pixels,
                float* y) {
  if (tail.empty()) return;
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) HWY_DYNAMIC_DISPATCH(tail_row)(tail, i % channels, y + i * pixels, pixels);
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / std::max<int64_t>(pixels, 1), 1);
  if (images * channels <= grain) return range(0, images * channels);
  plugin::parallel_for(frame, 0, images * channels, grain, range);
}

}  // namespace backplane::cpu
#endif
