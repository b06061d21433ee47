// See shifted_product.hpp. Six rows by two vectors are summed in registers; the depth is cut so that what the columns
// of two vectors read stays in the L1 cache while all rows pass over it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/shifted_product.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>

#include "kernels/nn/shifted_product.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kDepth = 256;
constexpr int kRows = 6;

template <int Rows>
HWY_INLINE void multiply_block(const float* a, int64_t a_row, const float* b, const int64_t* offsets, int64_t depth,
                               bool first, float* c) {
  const hn::ScalableTag<float> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  using V = hn::Vec<decltype(d)>;
  V left[Rows], right[Rows];
#pragma GCC unroll 6
  for (int i = 0; i < Rows; ++i) left[i] = right[i] = hn::Zero(d);
  for (int64_t k = 0; k < depth; ++k) {
    const float* row = b + offsets[k];
    const V x = hn::LoadU(d, row), y = hn::LoadU(d, row + step);
#pragma GCC unroll 6
    for (int i = 0; i < Rows; ++i) {
      const V factor = hn::Set(d, a[i * a_row + k]);
      left[i] = hn::MulAdd(factor, x, left[i]);
      right[i] = hn::MulAdd(factor, y, right[i]);
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < Rows; ++i) {
    float* out = c + i * kShiftedColumns;
    hn::StoreU(first ? left[i] : hn::Add(left[i], hn::LoadU(d, out)), d, out);
    hn::StoreU(first ? right[i] : hn::Add(right[i], hn::LoadU(d, out + step)), d, out + step);
  }
}

template <int Rows>
HWY_NOINLINE void multiply_columns(const float* a, int64_t a_row, const float* b, const int64_t* offsets, int64_t depth,
                                   bool first, float* c, int64_t begin, int64_t end) {
  const auto width = static_cast<int64_t>(2 * hn::Lanes(hn::ScalableTag<float>()));
  for (int64_t j = begin; j < end; j += width) multiply_block<Rows>(a, a_row, b + j, offsets, depth, first, c + j);
}

void multiply_shifted(const float* a, int64_t rows, int64_t depth, const float* b, const int64_t* offsets, float* c) {
  // Where the rows of a do not stay in the L2 cache, they pass over more columns at a time.
  const int64_t columns = rows * std::min(depth, kDepth) > 1 << 16 ? kShiftedColumns : kShiftedColumns / 4;
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t n = std::min(kDepth, depth - k);
    for (int64_t j = 0; j < kShiftedColumns; j += columns) {
      int64_t i = 0;
      const auto some = [&](auto function, int64_t count) {
        function(a + i * depth + k, depth, b, offsets + k, n, k == 0, c + i * kShiftedColumns, j, j + columns);
        i += count;
      };
      while (i + kRows <= rows) some(multiply_columns<kRows>, kRows);
      if (rows - i >= 4) some(multiply_columns<4>, 4);
      if (rows - i >= 2) some(multiply_columns<2>, 2);
      if (rows - i >= 1) some(multiply_columns<1>, 1);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(multiply_shifted);

void shifted_product(const float* a, int64_t rows, int64_t depth, const float* b, const int64_t* offsets, float* c) {
  HWY_DYNAMIC_DISPATCH(multiply_shifted)(a, rows, depth, b, offsets, c);
}

}  // namespace backplane::cpu
#endif
