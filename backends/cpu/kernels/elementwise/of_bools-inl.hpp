// An operation on bools, where any byte but 0 is true; included once per Highway target.
#if defined(BACKPLANE_CPU_OF_BOOLS) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_OF_BOOLS
#undef BACKPLANE_CPU_OF_BOOLS
#else
#define BACKPLANE_CPU_OF_BOOLS
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

// Op sees 0 or 1.
template <class Op>
struct OfBools {
  static HWY_INLINE uint8_t call(uint8_t a, uint8_t b) {
    return Op::call(static_cast<uint8_t>(a != 0), static_cast<uint8_t>(b != 0));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif
