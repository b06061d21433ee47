// See int_gemm.hpp. A band of columns of B, two vectors wide, is packed into one piece, padded with zeros, and
// multiplied by all rows of A in blocks whose sums stay in registers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linalg/int_gemm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>

#include "kernels/linalg/int_gemm.hpp"
#include "runtime/scratch.hpp"
#include "simd/chosen_table.hpp"
#include "simd/unrolled-inl.hpp"

#ifndef BACKPLANE_CPU_INT_GEMM
#define BACKPLANE_CPU_INT_GEMM
namespace backplane::cpu {
constexpr int64_t kDepth = 256;  // rows of a band, which is then half of L1
template <class T>
struct IntProduct {
  const T *a, *b;
  T* c;
  int64_t m, n, k;
  bool accumulate;
  T* band;  // kDepth rows of band_bytes
};
struct IntGemmTable {
  void (*of_uint32)(const IntProduct<uint32_t>&);
  void (*of_uint64)(const IntProduct<uint64_t>&);
  int64_t band_bytes;
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kRows = 4;

template <int M, class T>
HWY_NOINLINE void block(const IntProduct<T>& p, int64_t row, int64_t column, int64_t columns, int64_t first) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[M][2];
  const T *left[M], *b = p.band;
  unrolled<M>([&](auto i) HWY_ATTR {
    left[i] = p.a + (row + i) * p.k + first;
    sums[i][0] = sums[i][1] = hn::Zero(d);
  });
  const int64_t depth = std::min(kDepth, p.k - first);
  for (int64_t at = 0; at < depth; ++at, b += 2 * lanes) {
    const V y = hn::LoadU(d, b), z = hn::LoadU(d, b + lanes);
    unrolled<M>([&](auto i) HWY_ATTR {
      const V x = hn::Set(d, left[i][at]);
      sums[i][0] = hn::Add(sums[i][0], hn::Mul(x, y));
      sums[i][1] = hn::Add(sums[i][1], hn::Mul(x, z));
    });
  }
  unrolled<M>([&](auto i) HWY_ATTR {
    HWY_ALIGN T found[2 * HWY_MAX_BYTES / sizeof(T)];
    hn::Store(sums[i][0], d, found);
    hn::Store(sums[i][1], d, found + lanes);
    T* c = p.c + (row + i) * p.n + column;
    for (int64_t j = 0; j < columns; ++j) c[j] = p.accumulate || first > 0 ? c[j] + found[j] : found[j];
  });
}

template <class T>
void multiply(const IntProduct<T>& p) {
  const auto width = static_cast<int64_t>(2 * hn::Lanes(hn::ScalableTag<T>()));
  if (p.k == 0 && !p.accumulate) std::fill_n(p.c, p.m * p.n, T(0));
  for (int64_t column = 0; column < p.n; column += width) {
    const int64_t columns = std::min(width, p.n - column);
    for (int64_t first = 0; first < p.k; first += kDepth) {
      for (int64_t i = 0; i < std::min(kDepth, p.k - first); ++i) {
        std::copy_n(p.b + (first + i) * p.n + column, columns, p.band + i * width);
        std::fill_n(p.band + i * width + columns, width - columns, T(0));
      }
      int64_t row = 0;
      for (; row + kRows <= p.m; row += kRows) block<kRows>(p, row, column, columns, first);
      for (; row < p.m; ++row) block<1>(p, row, column, columns, first);
    }
  }
}

void fill_int_gemm(IntGemmTable& t) {
  t.of_uint32 = multiply<uint32_t>;
  t.of_uint64 = multiply<uint64_t>;
  t.band_bytes = static_cast<int64_t>(2 * hn::Lanes(hn::ScalableTag<uint8_t>()));
#if HWY_TARGET == HWY_SCALAR
  t.band_bytes = 16;  // two elements, whose vectors have one lane each
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_int_gemm);

namespace {

const IntGemmTable& table() {
  return chosen_table<IntGemmTable>([](IntGemmTable& t) { HWY_DYNAMIC_DISPATCH(fill_int_gemm)(t); });
}

}  // namespace

void int_gemm(const uint32_t* a, const uint32_t* b, uint32_t* c, int64_t m, int64_t n, int64_t k, bool accumulate) {
  const Scratch<uint32_t> band(kDepth * table().band_bytes / 4);
  table().of_uint32({a, b, c, m, n, k, accumulate, band.get()});
}
void int_gemm(const uint64_t* a, const uint64_t* b, uint64_t* c, int64_t m, int64_t n, int64_t k, bool accumulate) {
  const Scratch<uint64_t> band(kDepth * table().band_bytes / 8);
  table().of_uint64({a, b, c, m, n, k, accumulate, band.get()});
}

}  // namespace backplane::cpu
#endif
