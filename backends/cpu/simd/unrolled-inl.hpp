// A loop whose index is a constant; included once per Highway target.
#if defined(BACKPLANE_CPU_UNROLLED) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_UNROLLED
#undef BACKPLANE_CPU_UNROLLED
#else
#define BACKPLANE_CPU_UNROLLED
#endif

#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

// body(0), ... body(N - 1) with constants: arrays of vectors that are indexed so live in registers from the first to
// the last, while arrays of a loop pass through memory before and after it.
template <int N, class Body>
HWY_INLINE void unrolled(Body&& body) {
  if constexpr (N > 0) {
    unrolled<N - 1>(body);
    body(std::integral_constant<int, N - 1>());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#endif
