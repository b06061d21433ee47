// A ConvTail on vectors of one channel; included once per Highway target.
#if defined(BACKPLANE_CPU_CONV_TAIL) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_CONV_TAIL
#undef BACKPLANE_CPU_CONV_TAIL
#else
#define BACKPLANE_CPU_CONV_TAIL
#endif

#include "hwy/highway.h"
#include "kernels/nn/conv_tail.hpp"
#include "simd/unrolled-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

template <int N, class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE void apply_tail(const ConvTail& tail, int64_t channel, D d, V (&values)[N]) {
  namespace hn = hwy::HWY_NAMESPACE;
  for (int s = 0; s < tail.n_steps; ++s) {
    const V scale = hn::Set(d, tail.steps[s].scale[channel]), shift = hn::Set(d, tail.steps[s].shift[channel]);
    unrolled<N>([&](auto i) HWY_ATTR { values[i] = hn::MulAdd(values[i], scale, shift); });
  }
  if (tail.bounded_below()) {
    const V low = hn::Set(d, tail.low), from = hn::Set(d, tail.low_from);
    unrolled<N>([&](auto i) HWY_ATTR { values[i] = hn::IfThenElse(hn::Le(values[i], from), low, values[i]); });
  }
  if (tail.bounded_above()) {
    const V high = hn::Set(d, tail.high), from = hn::Set(d, tail.high_from);
    unrolled<N>([&](auto i) HWY_ATTR { values[i] = hn::IfThenElse(hn::Ge(values[i], from), high, values[i]); });
  }
}

// The same of one channel, with the last step and the bounds in registers.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
class ChannelTail {
 public:
  HWY_INLINE ChannelTail(const ConvTail& tail, int64_t channel, D d)
      : steps_(tail.steps), earlier_(tail.n_steps - 1), bounded_above_(tail.bounded_above()), channel_(channel) {
    namespace hn = hwy::HWY_NAMESPACE;
    const AffineStep* last = tail.n_steps > 0 ? tail.steps + earlier_ : nullptr;
    scale_ = hn::Set(d, last != nullptr ? last->scale[channel] : 1.0f);
    shift_ = hn::Set(d, last != nullptr ? last->shift[channel] : -0.0f);
    low_ = hn::Set(d, tail.low);
    low_from_ = hn::Set(d, tail.low_from);
    high_ = hn::Set(d, tail.high);
    high_from_ = hn::Set(d, tail.high_from);
  }
  template <int N>
  HWY_INLINE void apply(D d, V (&values)[N]) const {
    namespace hn = hwy::HWY_NAMESPACE;
    for (int s = 0; s < earlier_; ++s) {
      const V scale = hn::Set(d, steps_[s].scale[channel_]), shift = hn::Set(d, steps_[s].shift[channel_]);
      unrolled<N>([&](auto i) HWY_ATTR { values[i] = hn::MulAdd(values[i], scale, shift); });
    }
    unrolled<N>([&](auto i) HWY_ATTR {
      const V value = hn::MulAdd(values[i], scale_, shift_);
      values[i] = hn::IfThenElse(hn::Le(value, low_from_), low_, value);
    });
    if (bounded_above_)
      unrolled<N>([&](auto i)
                      HWY_ATTR { values[i] = hn::IfThenElse(hn::Ge(values[i], high_from_), high_, values[i]); });
  }

 private:
  const AffineStep* steps_;
  int earlier_;
  bool bounded_above_;
  int64_t channel_;
  V scale_, shift_, low_, low_from_, high_, high_from_;
};

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#endif
