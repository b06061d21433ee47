// See half_dots.hpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linalg/half_dots.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>

#include "kernels/linalg/half_dots.hpp"
#include "simd/chosen_table.hpp"
#include "simd/half_vectors-inl.hpp"
#include "simd/unrolled-inl.hpp"

#ifndef BACKPLANE_CPU_HALF_DOTS
#define BACKPLANE_CPU_HALF_DOTS
namespace backplane::cpu {
// out[i * out_step] = rows[i * row_step] . x, over k contiguous elements; steps in elements.
struct HalfDots {
  const char *rows, *x;
  char* out;
  int64_t count, k, row_step, out_step;
};
struct HalfDotsTable {
  void (*of_float16)(const HalfDots&);
  void (*of_bfloat16)(const HalfDots&);
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// M rows at once, from row `row` on: their pairs of vectors meet those of x.
template <int M, class S>
HWY_INLINE void some_dots(const HalfDots& p, int64_t row) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto step = static_cast<int64_t>(2 * hn::Lanes(d));
  const S *x = reinterpret_cast<const S*>(p.x), *rows[M];
  V even[M], odd[M];
  unrolled<M>([&](auto i) HWY_ATTR {
    rows[i] = reinterpret_cast<const S*>(p.rows) + (row + i) * p.row_step;
    even[i] = odd[i] = hn::Zero(d);
  });
  int64_t at = 0;
  for (; at + step <= p.k; at += step) {
    V a, b;
    widen_pair(d, x + at, a, b);
    unrolled<M>([&](auto i) HWY_ATTR {
      V v, w;
      widen_pair(d, rows[i] + at, v, w);
      even[i] = hn::MulAdd(v, a, even[i]);
      odd[i] = hn::MulAdd(w, b, odd[i]);
    });
  }
  unrolled<M>([&](auto i) HWY_ATTR {
    float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[i], odd[i])));
    for (int64_t j = at; j < p.k; ++j) sum += static_cast<float>(rows[i][j]) * static_cast<float>(x[j]);
    reinterpret_cast<S*>(p.out)[(row + i) * p.out_step] = S(sum);
  });
}
template <class S>
void dots(const HalfDots& p) {
  int64_t row = 0;
  for (; row + 4 <= p.count; row += 4) some_dots<4, S>(p, row);
  for (; row < p.count; ++row) some_dots<1, S>(p, row);
}

void fill_half_dots(HalfDotsTable& t) {
  t.of_float16 = dots<plugin::float16>;
  t.of_bfloat16 = dots<plugin::bfloat16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_half_dots);

bool half_dots(bp_dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c) {
  if ((dtype != BP_FLOAT16 && dtype != BP_BFLOAT16) || std::min(c.rows, c.cols) != 1) return false;
  if ((a.col_stride != 1 && a.cols != 1) || (b.row_stride != 1 && b.rows != 1)) return false;
  static const HalfDotsTable& table = chosen_table<HalfDotsTable>([](HalfDotsTable& t) {
    HWY_DYNAMIC_DISPATCH(fill_half_dots)
    (t);
  });
  const bool by_rows = c.cols == 1;  // of a, or by columns of b
  const HalfDots p{by_rows ? a.data : b.data,
                   by_rows ? b.data : a.data,
                   c.data,
                   by_rows ? c.rows : c.cols,
                   a.cols,
                   by_rows ? a.row_stride : b.col_stride,
                   by_rows ? c.row_stride : c.col_stride};
  (dtype == BP_FLOAT16 ? table.of_float16 : table.of_bfloat16)(p);
  return true;
}

}  // namespace backplane::cpu
#endif
