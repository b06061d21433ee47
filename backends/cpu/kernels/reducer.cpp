// The loops of the reductions. Contiguous rows run on 32 lanes, which vectorise and shorten the chains of additions;
// long rows are halved, so that the error of a sum grows with the logarithm of its length.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reducer.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <complex>
#include <type_traits>

#include "kernels/reducer.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

struct Sum {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return a + b;
  }
};
struct Prod {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return a * b;
  }
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> a, std::complex<T> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};
// A NaN on either side stays.
struct Max {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return (a > b) | (a != a) ? a : b;
  }
};
struct Min {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return (a < b) | (a != a) ? a : b;
  }
};
struct Any {
  static HWY_INLINE uint8_t call(uint8_t a, uint8_t b) { return a | b; }
};
struct All {
  static HWY_INLINE uint8_t call(uint8_t a, uint8_t b) { return a & b; }
};

constexpr int64_t kLanes = 32;
constexpr int64_t kPairwiseBlock = 1024;  // 32 additions in a lane, then 5 levels of a tree

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
  for (int64_t width = kLanes / 2; width > 0; width /= 2)
    for (int64_t j = 0; j < width; ++j) lane[j] = Op::call(lane[j], lane[j + width]);
  return lane[0];
}

template <class Op, class T>
void row_loop(const char* x, int64_t stride, int64_t n, char* accumulator) {
  *reinterpret_cast<T*>(accumulator) = stride == int64_t{sizeof(T)}
                                           ? reduce_contiguous<Op, T>(reinterpret_cast<const T*>(x), n)
                                           : reduce_strided<Op, T>(x, stride, n);
}

template <class Op, class T>
void merge_loop(char* accumulators, const char* x, int64_t n) {
  T* a = reinterpret_cast<T*>(accumulators);
  const T* b = reinterpret_cast<const T*>(x);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) a[i] = Op::call(a[i], b[i]);
}

template <class Op, class T>
constexpr Reducer reducer() {
  return {&row_loop<Op, T>, &merge_loop<Op, T>};
}

// Signed and unsigned sums have the same bits; unsigned ones may wrap.
template <class Op>
void fill_additive(Reducer* by) {
  by[BP_INT64] = by[BP_UINT64] = reducer<Op, uint64_t>();
  by[BP_FLOAT32] = reducer<Op, float>();
  by[BP_FLOAT64] = reducer<Op, double>();
  by[BP_COMPLEX64] = reducer<Op, std::complex<float>>();
  by[BP_COMPLEX128] = reducer<Op, std::complex<double>>();
}
template <class Op>
void fill_ordered(Reducer* by) {
  by[BP_INT8] = reducer<Op, int8_t>();
  by[BP_INT16] = reducer<Op, int16_t>();
  by[BP_INT32] = reducer<Op, int32_t>();
  by[BP_INT64] = reducer<Op, int64_t>();
  by[BP_UINT8] = reducer<Op, uint8_t>();
  by[BP_UINT16] = reducer<Op, uint16_t>();
  by[BP_UINT32] = reducer<Op, uint32_t>();
  by[BP_UINT64] = reducer<Op, uint64_t>();
  by[BP_FLOAT32] = reducer<Op, float>();
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
  static const ReducerTable table = [] {
    ReducerTable chosen{};
    HWY_DYNAMIC_DISPATCH(fill_reducers)(chosen);
    return chosen;
  }();
  return table;
}

}  // namespace backplane::cpu
#endif
