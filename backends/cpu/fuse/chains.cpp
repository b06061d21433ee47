// The loops of the superinstructions, one for every sequence of links.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fuse/chains.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cstring>

#include "fuse/chains.hpp"
#include "simd/chosen_table.hpp"

#ifndef BACKPLANE_CPU_FUSE_CHAIN_TABLE
#define BACKPLANE_CPU_FUSE_CHAIN_TABLE
namespace backplane::cpu::fuse {
struct ChainTable {
  Chain of[2][kFirstLinks][kLinks][kLinks];  // [float64][links]
};
}  // namespace backplane::cpu::fuse
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu::fuse {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <Link L, class V>
HWY_INLINE V linked(V so_far, V next) {
  if constexpr (L == Link::kAdd) return hn::Add(so_far, next);
  if constexpr (L == Link::kMultiply) return hn::Mul(so_far, next);
  if constexpr (L == Link::kSubtract) return hn::Sub(so_far, next);
  if constexpr (L == Link::kDivide) return hn::Div(so_far, next);
  if constexpr (L == Link::kSubtractSwapped) return hn::Sub(next, so_far);
  if constexpr (L == Link::kDivideSwapped) return hn::Div(next, so_far);
  return so_far;
}

// Rows of whole vectors: `columns` is a multiple of their lanes. A value per row is read from its first
// place.
using Vectors = void (*)(const ChainRows& rows);

template <class T, Link A, Link B, Link C>
void chain_vectors(const ChainRows& rows) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T repeated[kLongestChain + 1][HWY_MAX_BYTES / sizeof(T)];
  const T* x[kLongestChain + 1];
  int64_t step[kLongestChain + 1];
  constexpr int kOperands = C != Link::kNone ? 4 : B != Link::kNone ? 3 : 2;
  const int64_t n = rows.columns;
  for (int64_t row = 0; row < rows.rows; ++row) {
    for (int k = 0; k < kOperands; ++k) {
      x[k] = reinterpret_cast<const T*>(rows.p[k + 1] + row * rows.row[k + 1]);
      step[k] = lanes;
      if (!rows.same[k + 1]) continue;
      hn::Store(hn::Set(d, *x[k]), d, repeated[k]);
      x[k] = repeated[k];
      step[k] = 0;
    }
    T* out = reinterpret_cast<T*>(rows.p[0] + row * rows.row[0]);
    const T *a = x[0], *b = x[1], *c = kOperands > 2 ? x[2] : a, *e = kOperands > 3 ? x[3] : a;
    const int64_t of_a = step[0], of_b = step[1], of_c = kOperands > 2 ? step[2] : 0,
                  of_e = kOperands > 3 ? step[3] : 0;
    const auto value = [&](const T* p, const T* q, const T* r, const T* s) HWY_ATTR {
      auto v = linked<A>(hn::LoadU(d, p), hn::LoadU(d, q));
      if constexpr (B != Link::kNone) v = linked<B>(v, hn::LoadU(d, r));
      if constexpr (C != Link::kNone) v = linked<C>(v, hn::LoadU(d, s));
      return v;
    };
    int64_t i = 0;
    // Two at a time: a third of the work is the moving of pointers.
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      const auto first = value(a, b, c, e), second = value(a + of_a, b + of_b, c + of_c, e + of_e);
      hn::StoreU(first, d, out + i);
      hn::StoreU(second, d, out + i + lanes);
      a += 2 * of_a, b += 2 * of_b, c += 2 * of_c, e += 2 * of_e;
    }
    if (i < n) hn::StoreU(value(a, b, c, e), d, out + i);
  }
}

// Separate from the hundreds of loops: the rows' last elements go through them on copies.
template <class T>
HWY_NOINLINE void chain_rests(const ChainRows& rows, int64_t whole, int operands, Vectors vectors) {
  HWY_ALIGN T rest[kLongestChain + 2][HWY_MAX_BYTES / sizeof(T)] = {};
  const auto count = static_cast<size_t>(rows.columns - whole) * sizeof(T);
  ChainRows last = rows;
  last.rows = 1;
  last.columns = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for (int64_t row = 0; row < rows.rows; ++row) {
    for (int k = 1; k <= operands; ++k) {
      const char* at = rows.p[k] + row * rows.row[k];
      std::memcpy(rest[k], rows.same[k] ? at : at + static_cast<size_t>(whole) * sizeof(T),
                  rows.same[k] ? sizeof(T) : count);
      last.p[k] = reinterpret_cast<char*>(rest[k]);
    }
    last.p[0] = reinterpret_cast<char*>(rest[0]);
    vectors(last);
    std::memcpy(rows.p[0] + row * rows.row[0] + static_cast<size_t>(whole) * sizeof(T), rest[0], count);
  }
}

template <class T>
HWY_NOINLINE void chain_rows(const ChainRows& rows, int operands, Vectors vectors) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const int64_t whole = rows.columns - rows.columns % lanes;
  if (whole == rows.columns) return vectors(rows);
  if (whole > 0) {
    ChainRows vector_rows = rows;
    vector_rows.columns = whole;
    vectors(vector_rows);
  }
  chain_rests<T>(rows, whole, operands, vectors);
}

template <class T, Link A, Link B, Link C>
void chain(const ChainRows& rows) {
  constexpr int kOperands = C != Link::kNone ? 4 : B != Link::kNone ? 3 : 2;
  chain_rows<T>(rows, kOperands, chain_vectors<T, A, B, C>);
}

template <class T, int A, int B, int C>
void fill_one(ChainTable& table, int type) {
  if constexpr (B != 0 || C == 0)
    table.of[type][A][B][C] = chain<T, static_cast<Link>(A), static_cast<Link>(B), static_cast<Link>(C)>;
}
template <class T, int A, int B, int... C>
void fill_last(ChainTable& table, int type, std::integer_sequence<int, C...>) {
  (fill_one<T, A, B, C>(table, type), ...);
}
template <class T, int A, int... B>
void fill_second(ChainTable& table, int type, std::integer_sequence<int, B...> links) {
  (fill_last<T, A, B>(table, type, links), ...);
}
template <class T, int... A>
void fill_first(ChainTable& table, int type, std::integer_sequence<int, A...>) {
  (fill_second<T, A + 1>(table, type, std::make_integer_sequence<int, kLinks>()), ...);
}
void fill_chains(ChainTable& table) {
  fill_first<float>(table, 0, std::make_integer_sequence<int, kFirstLinks - 1>());
  fill_first<double>(table, 1, std::make_integer_sequence<int, kFirstLinks - 1>());
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu::fuse
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu::fuse {
HWY_EXPORT(fill_chains);

Chain find_chain(bp_dtype dtype, const Link (&links)[kLongestChain]) {
  const ChainTable& table = chosen_table<ChainTable>([](ChainTable& t) { HWY_DYNAMIC_DISPATCH(fill_chains)(t); });
  return table
      .of[dtype == BP_FLOAT64][static_cast<int>(links[0])][static_cast<int>(links[1])][static_cast<int>(links[2])];
}

}  // namespace backplane::cpu::fuse
#endif
