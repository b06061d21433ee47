// See positions.hpp. A position p is out of range where p or size - 1 - p has its sign bit set: no comparison is
// needed, and a difference that overflows comes from a negative p.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/positions.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/positions.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

bool inside(const int64_t* positions, int64_t n, int64_t size) {
  const hn::ScalableTag<int64_t> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto last = hn::Set(d, size - 1);
  auto signs = hn::Zero(d), more = signs;
  int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    const auto p = hn::LoadU(d, positions + i), q = hn::LoadU(d, positions + i + step);
    signs = hn::Or(signs, hn::Or(p, hn::Sub(last, p)));
    more = hn::Or(more, hn::Or(q, hn::Sub(last, q)));
  }
  uint64_t rest = 0;
  for (; i < n; ++i)
    rest |=
        static_cast<uint64_t>(positions[i]) | (static_cast<uint64_t>(size - 1) - static_cast<uint64_t>(positions[i]));
  return rest >> 63 == 0 && hn::AllFalse(d, hn::Lt(hn::Or(signs, more), hn::Zero(d)));
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(inside);

bool all_inside(const int64_t* positions, int64_t n, int64_t size) {
  return HWY_DYNAMIC_DISPATCH(inside)(positions, n, size);
}

}  // namespace backplane::cpu
#endif
