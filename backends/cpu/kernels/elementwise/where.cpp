// where: a choice moves bytes, so that one loop per element size serves every dtype.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/where.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

// Both sides are read whatever the condition says, which is what lets the loop vectorise.
template <class T, int64_t X, int64_t Y>
void choose(T* out, const uint8_t* condition, const T* x, const T* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T a = x[i * X], b = y[i * Y];
    out[i] = condition[i] != 0 ? a : b;
  }
}

template <class T>
const char* where_loop(char* const* p, const int64_t* s, int64_t n) {
  constexpr int64_t kItem = sizeof(T);
  if (s[0] == kItem && s[1] == 1 && (s[2] == kItem || s[2] == 0) && (s[3] == kItem || s[3] == 0)) {
    T* out = reinterpret_cast<T*>(p[0]);
    const auto* condition = reinterpret_cast<const uint8_t*>(p[1]);
    const T *x = reinterpret_cast<const T*>(p[2]), *y = reinterpret_cast<const T*>(p[3]);
    if (s[2] != 0) {
      s[3] != 0 ? choose<T, 1, 1>(out, condition, x, y, n) : choose<T, 1, 0>(out, condition, x, y, n);
    } else {
      s[3] != 0 ? choose<T, 0, 1>(out, condition, x, y, n) : choose<T, 0, 0>(out, condition, x, y, n);
    }
    return nullptr;
  }
  for (int64_t i = 0; i < n; ++i) {
    const bool first = *(p[1] + i * s[1]) != 0;
    *reinterpret_cast<T*>(p[0] + i * s[0]) = *reinterpret_cast<const T*>(first ? p[2] + i * s[2] : p[3] + i * s[3]);
  }
  return nullptr;
}

struct Wide {
  uint64_t low, high;
};

void fill_where(Elementwise& t) {
  const InnerLoop by_size[] = {where_loop<uint8_t>, where_loop<uint16_t>, where_loop<uint32_t>, where_loop<uint64_t>,
                               where_loop<Wide>};
  for (bp_dtype dtype = 0; dtype < BP_DTYPE_COUNT; ++dtype)
    t.inner[dtype] = by_size[hwy::FloorLog2(plugin::kItemSize[dtype])];
  t.condition_first = true;
}

std::span<ElementwiseRow> where_rows() {
  static ElementwiseRow rows[] = {{"bp::where", elementwise_ternary, {fill_where}}};
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(where_rows);

const Family kWhere([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(where_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif
