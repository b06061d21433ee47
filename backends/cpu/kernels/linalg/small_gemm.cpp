// See small_gemm.hpp.
//
// A block of C is M rows by V vectors of columns, all in registers; a vector that would cross the end of the row is
// moved back over its neighbour and computes those columns twice, so it needs no masks. Rows of fewer columns than a
// vector has lanes take narrower vectors. Where the columns of B lie in memory instead of its rows, long ones and those
// for a single row of A take dot products, others a transposed copy of B.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linalg/small_gemm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>

#include "kernels/linalg/dnn_sgemm.hpp"
#include "kernels/linalg/small_gemm.hpp"
#include "simd/chosen_table.hpp"
#include "simd/unrolled-inl.hpp"

#ifndef BACKPLANE_CPU_SMALL_GEMM
#define BACKPLANE_CPU_SMALL_GEMM
namespace backplane::cpu {
constexpr int64_t kPackedBytes = 16384;  // of a transposed copy, on the stack
constexpr int64_t kDotLength = 96;       // from which on dot products are worth their sums over lanes
struct SmallGemmTable {
  void (*of_float)(const SmallProduct<float>&);
  void (*of_double)(const SmallProduct<double>&);
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of a block of V vectors: sums, a row of B and an element of A fit into 16 registers, and 8 or more sums hide the
// latency of a multiply-add.
constexpr int kBlockRows[] = {0, 8, 6, 4, 2};
constexpr int kWidest = 4;

// M rows of C from `row` on, V vectors of columns from `column` on; the last one starts at `last`.
template <int M, int V, class D, class T = hn::TFromD<D>>
HWY_NOINLINE void block(const SmallProduct<T>& p, int64_t row, int64_t column, int64_t last) {
  const D d;
  const int64_t at_last = last - column, a_col = p.a_col, b_row = p.b_row, c_row = p.c_row;
  const auto place = [&](auto v) HWY_ATTR {
    return v + 1 == V ? at_last : static_cast<int64_t>(v) * static_cast<int64_t>(hn::Lanes(D()));
  };
  hn::Vec<D> sums[M][V];
  const T *left[M], *b = p.b + column;
  unrolled<M>([&](auto i) HWY_ATTR {
    left[i] = p.a + (row + i) * p.a_row;
    unrolled<V>([&](auto v) HWY_ATTR { sums[i][v] = hn::Zero(d); });
  });
  for (int64_t rest = p.k, at = 0; rest > 0; --rest, at += a_col, b += b_row) {
    hn::Vec<D> right[V];
    unrolled<V>([&](auto v) HWY_ATTR { right[v] = hn::LoadU(d, b + place(v)); });
    unrolled<M>([&](auto i) HWY_ATTR {
      const auto x = hn::Set(d, left[i][at]);
      unrolled<V>([&](auto v) HWY_ATTR { sums[i][v] = hn::MulAdd(x, right[v], sums[i][v]); });
    });
  }
  T* c = p.c + row * c_row + column;
  unrolled<M>([&](auto i) HWY_ATTR {
    unrolled<V>([&](auto v) HWY_ATTR { hn::StoreU(sums[i][v], d, c + place(v)); });
    c += c_row;
  });
}

template <int M, int V, class D, class T = hn::TFromD<D>>
HWY_INLINE void block_of_rows(const SmallProduct<T>& p, int64_t rows, int64_t row, int64_t column, int64_t last) {
  if (rows == M) return block<M, V, D>(p, row, column, last);
  if constexpr (M > 1) block_of_rows<M - 1, V, D>(p, rows, row, column, last);
}

// V vectors of columns of all rows, in blocks of about equal height.
template <int V, class D, class T = hn::TFromD<D>>
void band(const SmallProduct<T>& p, int64_t column, int64_t last) {
  constexpr int kMost = kBlockRows[V];
  const int64_t blocks = (p.m + kMost - 1) / kMost;
  for (int64_t i = 0, row = 0; i < blocks; ++i) {
    const int64_t rows = (p.m - row + blocks - i - 1) / (blocks - i);
    block_of_rows<kMost, V, D>(p, rows, row, column, last);
    row += rows;
  }
}

// B by rows, n no less than the lanes.
template <class D, class T = hn::TFromD<D>>
void by_rows(const SmallProduct<T>& p) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t column = 0; column < p.n;) {
    const int64_t vectors = (p.n - column + lanes - 1) / lanes;
    const int64_t width = p.m <= 2       ? std::min<int64_t>(vectors, kWidest)
                          : vectors == 3 ? 3
                                         : std::min<int64_t>(vectors, 2);
    const int64_t last = std::min(column + (width - 1) * lanes, p.n - lanes);
    if (width == 1) band<1, D>(p, column, last);
    if (width == 2) band<2, D>(p, column, last);
    if (width == 3) band<3, D>(p, column, last);
    if (width == 4) band<4, D>(p, column, last);
    column += width * lanes;
  }
}

template <size_t Lanes, class T>
HWY_INLINE void in_lanes(const SmallProduct<T>& p) {
  const hn::CappedTag<T, Lanes> d;
  if constexpr (Lanes > 1) {
    if (p.n < static_cast<int64_t>(hn::Lanes(d))) return in_lanes<Lanes / 2>(p);
  }
  by_rows<decltype(d)>(p);
}

// M rows of A, contiguous along k as the columns of B are, times four columns of B. Stores `columns` of them.
template <int M, class T>
HWY_NOINLINE void dots(const SmallProduct<T>& p, int64_t row, int64_t column, int64_t columns) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[M][4];
  const T *left[M], *right[4];
  unrolled<4>([&](auto j) HWY_ATTR {
    right[j] = p.b + (column + std::min<int64_t>(j, columns - 1)) * p.b_col;
    unrolled<M>([&](auto i) HWY_ATTR { sums[i][j] = hn::Zero(d); });
  });
  unrolled<M>([&](auto i) HWY_ATTR { left[i] = p.a + (row + i) * p.a_row; });
  int64_t at = 0;
  for (; at + lanes <= p.k; at += lanes) {
    V x[M];
    unrolled<M>([&](auto i) HWY_ATTR { x[i] = hn::LoadU(d, left[i] + at); });
    unrolled<4>([&](auto j) HWY_ATTR {
      const V y = hn::LoadU(d, right[j] + at);
      unrolled<M>([&](auto i) HWY_ATTR { sums[i][j] = hn::MulAdd(x[i], y, sums[i][j]); });
    });
  }
  if (at < p.k) {
    const auto rest = hn::FirstN(d, static_cast<size_t>(p.k - at));
    unrolled<4>([&](auto j) HWY_ATTR {
      const V y = hn::MaskedLoad(rest, d, right[j] + at);
      unrolled<M>([&](auto i)
                      HWY_ATTR { sums[i][j] = hn::MulAdd(hn::MaskedLoad(rest, d, left[i] + at), y, sums[i][j]); });
    });
  }
  unrolled<M>([&](auto i) HWY_ATTR {
    T* c = p.c + (row + i) * p.c_row + column;
    unrolled<4>([&](auto j) HWY_ATTR {
      if (j < columns) c[j] = hn::GetLane(hn::SumOfLanes(d, sums[i][j]));
    });
  });
}
template <class T>
void by_dots(const SmallProduct<T>& p) {
  for (int64_t column = 0; column < p.n; column += 4) {
    const int64_t columns = std::min<int64_t>(4, p.n - column);
    int64_t row = 0;
    for (; p.m - row >= 5 || p.m - row == 3; row += 3) dots<3>(p, row, column, columns);
    for (; p.m - row >= 2; row += 2) dots<2>(p, row, column, columns);
    if (row < p.m) dots<1>(p, row, column, columns);
  }
}

#if HWY_TARGET == HWY_SCALAR
template <class T>
constexpr int64_t kSide = 1;
template <class T>
HWY_INLINE void transpose_square(const T* from, int64_t, T* to, int64_t) {
  *to = *from;
}
#else
template <class T>
constexpr int64_t kSide = 16 / sizeof(T);
// kSide rows by kSide columns of a transposed copy.
template <class T, class D = hn::FixedTag<T, kSide<T>>>
HWY_INLINE void transpose_square(const T* from, int64_t step, T* to, int64_t to_step) {
  const D d;
  if constexpr (sizeof(T) == 8) {
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + step);
    hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
    hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + to_step);
  } else {
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + step);
    const auto c = hn::LoadU(d, from + 2 * step), e = hn::LoadU(d, from + 3 * step);
    const auto ac_low = hn::InterleaveLower(d, a, c), ac_high = hn::InterleaveUpper(d, a, c);
    const auto be_low = hn::InterleaveLower(d, b, e), be_high = hn::InterleaveUpper(d, b, e);
    hn::StoreU(hn::InterleaveLower(d, ac_low, be_low), d, to);
    hn::StoreU(hn::InterleaveUpper(d, ac_low, be_low), d, to + to_step);
    hn::StoreU(hn::InterleaveLower(d, ac_high, be_high), d, to + 2 * to_step);
    hn::StoreU(hn::InterleaveUpper(d, ac_high, be_high), d, to + 3 * to_step);
  }
}
#endif

// to (k x n, by rows) = B, whose columns lie `p.b_col` apart and are contiguous, or of any strides.
template <class T>
void copy_by_rows(const SmallProduct<T>& p, T* to) {
  const int64_t whole_k = p.b_row == 1 ? p.k / kSide<T> * kSide<T> : 0, whole_n = p.n / kSide<T> * kSide<T>;
  for (int64_t j = 0; j < whole_n; j += kSide<T>)
    for (int64_t i = 0; i < whole_k; i += kSide<T>)
      transpose_square(p.b + j * p.b_col + i, p.b_col, to + i * p.n + j, p.n);
  const auto copy = [&](int64_t i, int64_t first) {
    for (int64_t j = first; j < p.n; ++j) to[i * p.n + j] = p.b[i * p.b_row + j * p.b_col];
  };
  for (int64_t i = 0; i < whole_k; ++i) copy(i, whole_n);
  for (int64_t i = whole_k; i < p.k; ++i) copy(i, 0);
}

template <class T>
void multiply(const SmallProduct<T>& p) {
  if (p.b_row == 1 && p.a_col == 1 && (p.m == 1 || p.k >= kDotLength)) return by_dots(p);
  if (p.b_col == 1 || p.n == 1) return in_lanes<HWY_LANES(T)>(p);
  alignas(64) T copy[kPackedBytes / sizeof(T)];
  copy_by_rows(p, copy);
  SmallProduct<T> q = p;
  q.b = copy;
  q.b_row = p.n;
  q.b_col = 1;
  in_lanes<HWY_LANES(T)>(q);
}

void fill_small_gemm(SmallGemmTable& t) {
  t.of_float = multiply<float>;
  t.of_double = multiply<double>;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_small_gemm);

namespace {

const SmallGemmTable& table() {
  return chosen_table<SmallGemmTable>([](SmallGemmTable& t) {
#if HWY_TARGETS & HWY_AVX2
    // Zen 4, which alone in its family has AVX-512, computes that in halves: up to a fifth slower.
    if (__builtin_cpu_is("amdfam19h") && __builtin_cpu_supports("avx512f")) return N_AVX2::fill_small_gemm(t);
#endif
    HWY_DYNAMIC_DISPATCH(fill_small_gemm)(t);
  });
}

// Few rows of A by a large B: OpenBLAS packs all of B, unless the product is small enough for its kernels for such.
template <class T>
bool pays_thin(const SmallProduct<T>& p, bool by_rows) {
  if (by_rows) return p.m <= 8;
  const int64_t most_rows = p.k <= 512 && !(sizeof(T) == 4 && has_dnn_sgemm()) ? 32 : 16;
  return p.b_row == 1 && p.a_col == 1 && p.k >= kDotLength && p.m <= most_rows;
}
// Measured against OpenBLAS 0.3.21, which has AVX-512 kernels for small products: docs/dev/decisions/cpu-tuning.md.
template <class T>
bool pays(const SmallProduct<T>& p) {
  constexpr int64_t kMostWork = sizeof(T) == 4 ? 65536 : 16384, kLeastWorkOfThin = int64_t{1} << 20;
  const bool by_rows = p.b_col == 1 || p.n == 1;
  const int64_t entries = p.k * p.n, work = p.m * entries;
  const bool copy_fits = entries * static_cast<int64_t>(sizeof(T)) <= kPackedBytes;
  if (p.m == 1 && by_rows) return entries <= 16384;
  if (p.m == 1) return p.b_row == 1 && (p.a_col == 1 ? entries <= 65536 : copy_fits);
  if (work >= kLeastWorkOfThin) return pays_thin(p, by_rows);
  if (!by_rows && (p.k >= kDotLength || !copy_fits)) return false;
  return work <= 512 || (work <= kMostWork && p.n >= (by_rows ? 4 : 8));
}

template <class T>
bool multiply_small(void (*multiply)(const SmallProduct<T>&), const Matrix& a, const Matrix& b, const Matrix& c) {
  SmallProduct<T> p{reinterpret_cast<const T*>(a.data),
                    reinterpret_cast<const T*>(b.data),
                    reinterpret_cast<T*>(c.data),
                    c.rows,
                    c.cols,
                    a.cols,
                    a.row_stride,
                    a.col_stride,
                    b.row_stride,
                    b.col_stride,
                    c.row_stride};
  int64_t c_col = c.col_stride;
  if (p.n == 1 && p.m > 1) {  // the transpose of a product of a row with a matrix
    std::swap(p.a, p.b);
    std::swap(p.m, p.n);
    std::swap(p.a_row, p.b_col);
    std::swap(p.a_col, p.b_row);
    std::swap(p.c_row, c_col);
  }
  if ((p.n > 1 && c_col != 1) || !pays(p)) return false;
  multiply(p);
  return true;
}

}  // namespace

bool small_gemm(bp_dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c) {
  if (std::min(c.rows, c.cols) > 256 || std::max({c.rows, c.cols, a.cols}) > int64_t{1} << 20) return false;
  if (dtype == BP_FLOAT32) return multiply_small(table().of_float, a, b, c);
  if (dtype == BP_FLOAT64) return multiply_small(table().of_double, a, b, c);
  return false;
}

}  // namespace backplane::cpu
#endif
