// The loops of the reductions. Contiguous rows run on eight vectors (or 32 lanes), which shortens the chains of
// additions; long rows are halved, so that the error of a sum grows with the logarithm of its length.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduction/reducer.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <complex>
#include <type_traits>

#include "kernels/reduction/combiners-inl.hpp"
#include "kernels/reduction/reducer.hpp"
#include "simd/chosen_table.hpp"
#include "simd/half_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kLanes = 32;

template <class Op, class T>
T reduce_strided(const char* x, int64_t stride, int64_t n) {
  if (n > kPairwiseBlock) {
    const int64_t half = n / 2;
    const T left = reduce_strided<Op, T>(x, stride, half);
    return Op::call(left, reduce_strided<Op, T>(x + half * stride, stride, n - half));
  }
  // Four chains hide the latency of the operation.
  T lane[4];
  const int64_t lanes = n < 4 ? n : 4;
  for (int64_t j = 0; j < lanes; ++j) lane[j] = *reinterpret_cast<const T*>(x + j * stride);
  int64_t i = lanes;
  for (; i + 4 <= n; i += 4)
    for (int64_t j = 0; j < 4; ++j) lane[j] = Op::call(lane[j], *reinterpret_cast<const T*>(x + (i + j) * stride));
  for (; i < n; ++i) lane[0] = Op::call(lane[0], *reinterpret_cast<const T*>(x + i * stride));
  T result = lane[0];
  for (int64_t j = 1; j < lanes; ++j) result = Op::call(result, lane[j]);
  return result;
}

// `width` elements, a power of two, by halves; they are overwritten.
template <class Op, class T>
HWY_INLINE T fold_array(T* lane, int64_t width) {
  for (width /= 2; width > 0; width /= 2)
    for (int64_t j = 0; j < width; ++j) lane[j] = Op::call(lane[j], lane[j + width]);
  return lane[0];
}

template <class Op, class T>
T reduce_contiguous(const T* x, int64_t n) {
  if (n < kLanes) return reduce_strided<Op, T>(reinterpret_cast<const char*>(x), sizeof(T), n);
  if (n > kPairwiseBlock) {
    const int64_t half = n / 2 / kLanes * kLanes;
    const T left = reduce_contiguous<Op, T>(x, half);
    return Op::call(left, reduce_contiguous<Op, T>(x + half, n - half));
  }
  T lane[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) lane[j] = x[j];
  int64_t i = kLanes;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) lane[j] = Op::call(lane[j], x[i + j]);
  for (int64_t j = 0; i + j < n; ++j) lane[j] = Op::call(lane[j], x[i + j]);
  return fold_array<Op>(lane, kLanes);
}

template <class Op, class D, class T = hn::TFromD<D>>
HWY_INLINE T fold_vector([[maybe_unused]] D d, hn::Vec<D> v) {
#if HWY_TARGET == HWY_SCALAR
  return hn::GetLane(v);
#elif HWY_HAVE_SCALABLE
  // A vector may have fewer lanes than its type, so its halves may differ from the type's.
  HWY_ALIGN T lane[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, lane);
  return fold_array<Op>(lane, static_cast<int64_t>(hn::Lanes(d)));
#else
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return fold_vector<Op>(half, Op::vector(half, hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
#endif
}

// The lanes of v, and fewer elements than those.
template <class Op, class D, class T = hn::TFromD<D>>
HWY_INLINE T fold_lanes(D d, hn::Vec<D> v, const T* rest, int64_t n) {
  if (n == 0) return fold_vector<Op>(d, v);
  HWY_ALIGN T lane[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, lane);
  for (int64_t j = 0; j < n; ++j) lane[j] = Op::call(lane[j], rest[j]);
  return fold_array<Op>(lane, static_cast<int64_t>(hn::Lanes(d)));
}

// Two to seven vectors.
template <class Op, class T>
T reduce_few(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  constexpr bool kOrdered = std::is_same_v<Op, Max> || std::is_same_v<Op, Min>;
  const auto zero = hn::Zero(d);
  auto v = hn::LoadU(d, x), w = hn::LoadU(d, x + step);
  auto odd = zero;
  if (kOrdered) odd = hn::MulAdd(w, zero, hn::Mul(v, zero));
  const auto take = [&](auto& into, int64_t i) HWY_ATTR {
    const auto y = hn::LoadU(d, x + i);
    into = Op::vector(d, into, y);
    if (kOrdered) odd = hn::MulAdd(y, zero, odd);
  };
  int64_t i = 2 * step;
  for (; i + 2 * step <= n; i += 2 * step) take(v, i), take(w, i + step);
  if (i + step <= n) {
    take(v, i);
    i += step;
  }
  if (kOrdered && !hn::AllTrue(d, hn::Eq(odd, zero))) return reduce_contiguous<Op, T>(x, n);
  return fold_lanes<Op>(d, Op::vector(d, v, w), x + i, n - i);
}

// float32 and float64: the same in eight vectors.
template <class Op, class T>
T reduce_vectors(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kVectors = 8;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  if (n < 2 * step) return reduce_contiguous<Op, T>(x, n);
  if (n < kVectors * step) return reduce_few<Op, T>(x, n);
  if (n > 2 * kPairwiseBlock) {
    const int64_t half = n / 2 / kPairwiseBlock * kPairwiseBlock;
    const T left = reduce_vectors<Op, T>(x, half);
    return Op::call(left, reduce_vectors<Op, T>(x + half, n - half));
  }
  constexpr bool kOrdered = std::is_same_v<Op, Max> || std::is_same_v<Op, Min>;
  const auto load = [&](int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); };
  auto v0 = load(0), v1 = load(step), v2 = load(2 * step), v3 = load(3 * step);
  auto v4 = load(4 * step), v5 = load(5 * step), v6 = load(6 * step), v7 = load(7 * step);
  // A product with 0 that is not 0 is a NaN's, or an infinity's: then the exact loop looks again.
  const auto zero = hn::Zero(d);
  auto o0 = zero, o1 = zero, o2 = zero, o3 = zero;
  const auto look = [&](auto& o, auto y) HWY_ATTR {
    if (kOrdered) o = hn::MulAdd(y, zero, o);
  };
  const auto take = [&](auto& v, auto& o, int64_t i) HWY_ATTR {
    const auto y = load(i);
    v = Op::vector(d, v, y);
    look(o, y);
  };
  look(o0, v0), look(o1, v1), look(o2, v2), look(o3, v3), look(o0, v4), look(o1, v5), look(o2, v6), look(o3, v7);
  int64_t i = kVectors * step;
  for (; i + kVectors * step <= n; i += kVectors * step) {
    take(v0, o0, i), take(v1, o1, i + step), take(v2, o2, i + 2 * step), take(v3, o3, i + 3 * step);
    take(v4, o0, i + 4 * step), take(v5, o1, i + 5 * step), take(v6, o2, i + 6 * step), take(v7, o3, i + 7 * step);
  }
  for (; i + step <= n; i += step) take(v0, o0, i);
  const auto odd = hn::Add(hn::Add(o0, o1), hn::Add(o2, o3));
  if (kOrdered && !hn::AllTrue(d, hn::Eq(odd, zero))) return reduce_contiguous<Op, T>(x, n);
  v0 = Op::vector(d, Op::vector(d, Op::vector(d, v0, v4), Op::vector(d, v2, v6)),
                  Op::vector(d, Op::vector(d, v1, v5), Op::vector(d, v3, v7)));
  return fold_lanes<Op>(d, v0, x + i, n - i);
}

template <class Op, class T>
T reduce_neighbours(const T* x, int64_t n) {
  if constexpr (std::is_floating_point_v<T>)
    return reduce_vectors<Op, T>(x, n);
  else
    return reduce_contiguous<Op, T>(x, n);
}

// Half floats: the same in four pairs of vectors, whose order within a pair does not matter.
template <class Op, class S>
float reduce_halves(const S* x, int64_t n) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto step = static_cast<int64_t>(2 * hn::Lanes(d));
  if (n > 2 * kPairwiseBlock) {
    const int64_t half = n / 2 / kPairwiseBlock * kPairwiseBlock;
    const float left = reduce_halves<Op>(x, half);
    return Op::call(left, reduce_halves<Op>(x + half, n - half));
  }
  constexpr bool kOrdered = std::is_same_v<Op, Max> || std::is_same_v<Op, Min>;
  float result = x[0];
  int64_t i = 0;
  if (n >= step) {
    V a[4], b[4], odd[4];
    const int64_t chains = n >= 4 * step ? 4 : 1;
    const auto zero = hn::Zero(d);
    const auto look = [&](V& o, V y, V z) HWY_ATTR {
      if (kOrdered) o = hn::MulAdd(z, zero, hn::MulAdd(y, zero, o));
    };
    for (int64_t k = 0; k < 4; ++k) {
      widen_pair(d, x + (k < chains ? k * step : 0), a[k], b[k]);
      odd[k] = zero;
      look(odd[k], a[k], b[k]);
    }
    const auto take = [&](int64_t k, int64_t at) HWY_ATTR {
      V y, z;
      widen_pair(d, x + at, y, z);
      a[k] = Op::vector(d, a[k], y);
      b[k] = Op::vector(d, b[k], z);
      look(odd[k], y, z);
    };
    for (i = chains * step; i + 4 * step <= n; i += 4 * step)
      take(0, i), take(1, i + step), take(2, i + 2 * step), take(3, i + 3 * step);
    for (; i + step <= n; i += step) take(0, i);
    V all = Op::vector(d, a[0], b[0]), strange = odd[0];
    for (int64_t k = 1; k < chains; ++k) {
      all = Op::vector(d, all, Op::vector(d, a[k], b[k]));
      strange = hn::Add(strange, odd[k]);
    }
    HWY_ALIGN float lane[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(all, d, lane);
    for (int64_t width = step / 4; width > 0; width /= 2)
      for (int64_t j = 0; j < width; ++j) lane[j] = Op::call(lane[j], lane[j + width]);
    result = lane[0];
    // As above: a NaN, or an infinity.
    if (kOrdered && !hn::AllTrue(d, hn::Eq(strange, zero))) {
      HWY_ALIGN float tile[HWY_MAX_BYTES / 2];
      for (i = 0; i + step <= n; i += step) {
        widen_pair(d, x + i, a[0], b[0]);
        hn::Store(a[0], d, tile);
        hn::Store(b[0], d, tile + step / 2);
        result = Op::call(result, reduce_contiguous<Op, float>(tile, step));
      }
    }
  } else {
    i = 1;
  }
  for (; i < n; ++i) result = Op::call(result, static_cast<float>(x[i]));
  return result;
}
template <class Op, class S>
void half_row_loop(const char* x, int64_t n, char* accumulator) {
  *reinterpret_cast<float*>(accumulator) = reduce_halves<Op>(reinterpret_cast<const S*>(x), n);
}

template <class Op, class T>
void row_loop(const char* x, int64_t stride, int64_t n, char* accumulator) {
  *reinterpret_cast<T*>(accumulator) = stride == int64_t{sizeof(T)}
                                           ? reduce_neighbours<Op, T>(reinterpret_cast<const T*>(x), n)
                                           : reduce_strided<Op, T>(x, stride, n);
}

template <class Op, class T>
void merge_loop(char* accumulators, const char* x, int64_t n) {
  T* a = reinterpret_cast<T*>(accumulators);
  const T* b = reinterpret_cast<const T*>(x);
  int64_t i = 0;
  if constexpr (std::is_floating_point_v<T>) {
    const hn::ScalableTag<T> d;
    const auto step = static_cast<int64_t>(hn::Lanes(d));
    for (; i + step <= n; i += step) hn::StoreU(Op::exact(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, a + i);
  }
#pragma GCC ivdep
  for (; i < n; ++i) a[i] = Op::call(a[i], b[i]);
}

// N rows at once, the first of them or a further eight: the accumulators are loaded and stored once for all, and the
// processor fetches from as many places of memory.
template <class Op, int N, class S>
void merge_some(plugin::Compute<S>* a, const char* x, int64_t stride, bool first, int64_t n) {
  using T = plugin::Compute<S>;
  const S* row[N];
  for (int k = 0; k < N; ++k) row[k] = reinterpret_cast<const S*>(x + k * stride);
  const auto fold = [&](int64_t i) {
    T y = static_cast<T>(row[0][i]);
    for (int k = 1; k < N; ++k) y = Op::call(y, static_cast<T>(row[k][i]));
    return first ? y : Op::call(a[i], y);
  };
  int64_t i = 0;
  if constexpr (std::is_floating_point_v<T>) {
    constexpr bool kOrdered = std::is_same_v<Op, Max> || std::is_same_v<Op, Min>;
    const hn::ScalableTag<T> d;
    const auto step = static_cast<int64_t>(hn::Lanes(d));
    const auto zero = hn::Zero(d);
    for (; i + step <= n; i += step) {
      auto y = widen(d, row[0] + i), z = widen(d, row[1] + i);
      auto odd = zero;
      if (kOrdered) odd = hn::MulAdd(z, zero, hn::Mul(y, zero));
      // Two chains.
      for (int k = 2; k < N; k += 2) {
        const auto u = widen(d, row[k] + i), v = widen(d, row[k + 1] + i);
        y = Op::vector(d, y, u);
        z = Op::vector(d, z, v);
        if (kOrdered) odd = hn::MulAdd(v, zero, hn::MulAdd(u, zero, odd));
      }
      y = Op::vector(d, y, z);
      // As in reduce_vectors: a NaN, or an infinity.
      if (kOrdered && !hn::AllTrue(d, hn::Eq(odd, zero))) {
        y = widen(d, row[0] + i);
        for (int k = 1; k < N; ++k) y = Op::exact(d, y, widen(d, row[k] + i));
      }
      hn::StoreU(first ? y : Op::exact(d, hn::LoadU(d, a + i), y), d, a + i);
    }
  }
  for (; i < n; ++i) a[i] = fold(i);
}
template <class Op, class S>
void merge_rows_loop(char* accumulators, const char* x, int64_t stride, int64_t rows, bool first, int64_t n) {
  auto* a = reinterpret_cast<plugin::Compute<S>*>(accumulators);
  return rows == 8 ? merge_some<Op, 8, S>(a, x, stride, first, n) : merge_some<Op, 4, S>(a, x, stride, first, n);
}

template <class Op, class T>
constexpr Reducer reducer() {
  return {&row_loop<Op, T>, &merge_loop<Op, T>, &merge_rows_loop<Op, T>, {}, {}};
}

template <class Op>
constexpr Reducer float_reducer() {
  Reducer result = reducer<Op, float>();
  result.of_float16 = {&half_row_loop<Op, plugin::float16>, &merge_rows_loop<Op, plugin::float16>};
  result.of_bfloat16 = {&half_row_loop<Op, plugin::bfloat16>, &merge_rows_loop<Op, plugin::bfloat16>};
  return result;
}

// Signed and unsigned sums have the same bits; unsigned ones may wrap.
template <class Op>
void fill_additive(Reducer* by) {
  by[BP_INT64] = by[BP_UINT64] = reducer<Op, uint64_t>();
  by[BP_FLOAT32] = float_reducer<Op>();
  by[BP_FLOAT64] = reducer<Op, double>();
  by[BP_COMPLEX64] = reducer<Op, std::complex<float>>();
  by[BP_COMPLEX128] = reducer<Op, std::complex<double>>();
}
template <class Op>
void fill_ordered(Reducer* by) {
  by[BP_BOOL] = reducer<Op, uint8_t>();
  by[BP_INT8] = reducer<Op, int8_t>();
  by[BP_INT16] = reducer<Op, int16_t>();
  by[BP_INT32] = reducer<Op, int32_t>();
  by[BP_INT64] = reducer<Op, int64_t>();
  by[BP_UINT8] = reducer<Op, uint8_t>();
  by[BP_UINT16] = reducer<Op, uint16_t>();
  by[BP_UINT32] = reducer<Op, uint32_t>();
  by[BP_UINT64] = reducer<Op, uint64_t>();
  by[BP_FLOAT32] = float_reducer<Op>();
  by[BP_FLOAT64] = reducer<Op, double>();
}

void fill_reducers(ReducerTable& table) {
  fill_additive<Sum>(table.by[static_cast<int>(Reduction::kSum)]);
  fill_additive<Prod>(table.by[static_cast<int>(Reduction::kProd)]);
  fill_ordered<Max>(table.by[static_cast<int>(Reduction::kMax)]);
  fill_ordered<Min>(table.by[static_cast<int>(Reduction::kMin)]);
  table.by[static_cast<int>(Reduction::kAny)][BP_BOOL] = reducer<Any, uint8_t>();
  table.by[static_cast<int>(Reduction::kAll)][BP_BOOL] = reducer<All, uint8_t>();
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_reducers);

const ReducerTable& reducers() {
  return chosen_table<ReducerTable>([](ReducerTable& t) { HWY_DYNAMIC_DISPATCH(fill_reducers)(t); });
}

}  // namespace backplane::cpu
#endif
