// See softmax_lanes.hpp. Every lane is shifted by its largest element, so exponentials are of numbers up to 0. A lane
// whose largest is NaN or infinite gets what the definition gives: NaN, or an infinite logarithm.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/softmax_lanes.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "kernels/nn/softmax_lanes.hpp"
#include "loops/vector_math-inl.hpp"
#include "simd/chosen_table.hpp"
#include "simd/exp_down-inl.hpp"

#ifndef BACKPLANE_CPU_SOFTMAX
#define BACKPLANE_CPU_SOFTMAX
namespace backplane::cpu {
using SoftmaxTable = std::tuple<SoftmaxLoops<float>, SoftmaxLoops<double>>;
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

// A vector at x + i with `count` elements in memory; the others are `filler`.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_some(D d, const T* x, int64_t count, T filler) {
  HWY_ALIGN T lane[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(hn::Set(d, filler), d, lane);
  std::copy_n(x, count, lane);
  return hn::Load(d, lane);
}
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_some(D d, hn::Vec<D> v, T* out, int64_t count) {
  HWY_ALIGN T lane[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, lane);
  std::copy_n(lane, count, out);
}

template <class T>
constexpr T kLowest = -std::numeric_limits<T>::infinity();

// The largest element; NaN where there is one.
template <class T>
T largest(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  auto m0 = hn::Set(d, kLowest<T>), m1 = m0, m2 = m0, m3 = m0;
  auto nan = hn::IsNaN(m0), more = nan;
  const auto take = [&](auto& m, auto& mask, auto y) HWY_ATTR {
    m = hn::Max(m, y);
    mask = hn::Or(mask, hn::IsNaN(y));
  };
  int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    take(m0, nan, hn::LoadU(d, x + i)), take(m1, more, hn::LoadU(d, x + i + step));
    take(m2, nan, hn::LoadU(d, x + i + 2 * step)), take(m3, more, hn::LoadU(d, x + i + 3 * step));
  }
  for (; i + step <= n; i += step) take(m0, nan, hn::LoadU(d, x + i));
  if (i < n) take(m1, more, load_some(d, x + i, n - i, kLowest<T>));
  if (!hn::AllFalse(d, hn::Or(nan, more))) return std::numeric_limits<T>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3))));
}

// The sum of exp(x - shift), whose terms go to `out` where Keep. Blocks are added in double.
template <bool Keep, class T>
double exp_sum(const T* x, T shift, T* out, int64_t n) {
  constexpr int64_t kBlock = 1024;
  const hn::ScalableTag<T> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto offset = hn::Set(d, shift);
  double total = 0;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t end = std::min(n, at + kBlock);
    auto s0 = hn::Zero(d), s1 = s0;
    const auto take = [&](auto& s, int64_t i) HWY_ATTR {
      const auto y = exp_down(d, hn::Sub(hn::LoadU(d, x + i), offset));
      if (Keep) hn::StoreU(y, d, out + i);
      s = hn::Add(s, y);
    };
    int64_t i = at;
    for (; i + 2 * step <= end; i += 2 * step) take(s0, i), take(s1, i + step);
    for (; i + step <= end; i += step) take(s0, i);
    if (i < end) {
      const auto y = exp_down(d, hn::Sub(load_some(d, x + i, end - i, kLowest<T>), offset));
      if (Keep) store_some(d, y, out + i, end - i);
      s1 = hn::Add(s1, y);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1))));
  }
  return total;
}

// Sums from 1 on whose digits beyond the 1 are lost: their logarithms are made of the rest, exp_rest.
constexpr double kNearOne = 1.5;

// exp_sum - 1, with the terms that are not 1 added apart. Of at least one element that is `shift`.
template <class T>
double exp_rest(const T* x, T shift, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  double ones = 0, rest = 0;
  for (int64_t i = 0; i < n; i += step) {
    const auto y =
        hn::Sub(i + step <= n ? hn::LoadU(d, x + i) : load_some(d, x + i, n - i, kLowest<T>), hn::Set(d, shift));
    const auto is_one = hn::Eq(y, hn::Zero(d));
    ones += static_cast<double>(hn::CountTrue(d, is_one));
    rest += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::IfThenZeroElse(is_one, exp_down(d, y)))));
  }
  return rest + (ones - 1);
}
// The logarithm of exp_sum, where `shift` is the largest element.
template <class T>
double log_of_sum(const T* x, T shift, int64_t n) {
  const double sum = exp_sum<false>(x, shift, static_cast<T*>(nullptr), n);
  return sum < kNearOne ? std::log1p(exp_rest(x, shift, n)) : std::log(sum);
}

template <class T>
bool finite(T x) {
  return x - x == 0;
}

template <class T>
void softmax(const T* x, T* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const T shift = largest(x, n);
  if (!finite(shift)) return static_cast<void>(std::fill_n(out, n, std::numeric_limits<T>::quiet_NaN()));
  const T scale = static_cast<T>(1 / exp_sum<true>(x, shift, out, n));
  const auto factor = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + step <= n; i += step) hn::StoreU(hn::Mul(hn::LoadU(d, out + i), factor), d, out + i);
  for (; i < n; ++i) out[i] *= scale;
}
template <class T>
LogSum<T> log_sum_exp(const T* x, int64_t n) {
  const T shift = largest(x, n);
  return {shift, finite(shift) ? log_of_sum(x, shift, n) : 0};
}
template <class T>
void log_softmax(const T* x, T* out, int64_t n) {
  const T shift = largest(x, n);
  if (!finite(shift)) return static_cast<void>(std::fill_n(out, n, std::numeric_limits<T>::quiet_NaN()));
  const T log_sum = static_cast<T>(log_of_sum(x, shift, n));
  // Two subtractions: their sum could lose what a large shift hides.
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - shift) - log_sum;
}

// Strips: the same steps, row by row over `width` lanes. A row is handed out vector by vector, the last one partly.
template <class T, class Row>
HWY_INLINE void for_each_vector(int64_t width, Row&& row) {
  const hn::ScalableTag<T> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < width; j += step) row(j, std::min(step, width - j));
}
template <class T, class D>
HWY_INLINE hn::Vec<D> load_row(D d, const T* x, int64_t count) {
  return count == static_cast<int64_t>(hn::Lanes(d)) ? hn::LoadU(d, x) : load_some(d, x, count, T(0));
}
template <class T, class D>
HWY_INLINE void store_row(D d, hn::Vec<D> v, T* out, int64_t count) {
  if (count == static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(v, d, out);
  else
    store_some(d, v, out, count);
}

constexpr int64_t kStripBlock = 256;  // rows
constexpr int64_t kPadded = kSoftmaxStrip + HWY_MAX_BYTES / 4;

// shifts[j] = the largest of lane j, or NaN; sums[j] = the sum of the exponentials, whose terms go to `out` if Keep.
template <bool Keep, class T>
void sum_strip(const T* x, T* out, int64_t n, int64_t stride, int64_t width, T* shifts, T* sums) {
  const hn::ScalableTag<T> d;
  std::fill_n(shifts, kPadded, kLowest<T>);
  std::fill_n(sums, kPadded, T(0));
  for (int64_t i = 0; i < n; ++i)
    for_each_vector<T>(width, [&](int64_t j, int64_t count) HWY_ATTR {
      const auto y = load_row<T>(d, x + i * stride + j, count), m = hn::LoadU(d, shifts + j);
      hn::StoreU(hn::IfThenElse(hn::Or(hn::Gt(m, y), hn::IsNaN(m)), m, y), d, shifts + j);
    });
  // Blocks are added apart, which keeps the error of long sums small.
  HWY_ALIGN T block[kPadded];
  for (int64_t first = 0; first < n; first += kStripBlock) {
    std::fill_n(block, kPadded, T(0));
    for (int64_t i = first; i < std::min(n, first + kStripBlock); ++i)
      for_each_vector<T>(width, [&](int64_t j, int64_t count) HWY_ATTR {
        const auto y = exp_down(d, hn::Sub(load_row<T>(d, x + i * stride + j, count), hn::LoadU(d, shifts + j)));
        if (Keep) store_row<T>(d, y, out + i * stride + j, count);
        hn::StoreU(hn::Add(hn::LoadU(d, block + j), y), d, block + j);
      });
    for (int64_t j = 0; j < width; ++j) sums[j] += block[j];
  }
}

// The same, `rows` rows at a time, so that each is in the cache when it is read again.
template <class T>
void sum_strip_in_pieces(const T* x, int64_t n, int64_t rows, int64_t stride, int64_t width, T* shifts, T* sums) {
  const hn::ScalableTag<T> d;
  T* const none = nullptr;
  sum_strip<false>(x, none, std::min(n, rows), stride, width, shifts, sums);
  HWY_ALIGN T piece_shifts[kPadded], piece_sums[kPadded];
  for (int64_t first = rows; first < n; first += rows) {
    sum_strip<false>(x + first * stride, none, std::min(rows, n - first), stride, width, piece_shifts, piece_sums);
    for_each_vector<T>(width, [&](int64_t j, int64_t) HWY_ATTR {
      const auto a = hn::LoadU(d, shifts + j), b = hn::LoadU(d, piece_shifts + j);
      const auto shift = hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
      // A piece without a number above -inf has no sum.
      const auto shifted = [&](auto sum, auto from) HWY_ATTR {
        const auto scaled = hn::Mul(sum, exp_down(d, hn::Sub(from, shift)));
        const auto some = hn::IfThenZeroElse(hn::Eq(from, hn::Set(d, kLowest<T>)), scaled);
        return hn::IfThenElse(hn::Eq(from, shift), sum, some);
      };
      const auto sum = hn::Add(shifted(hn::LoadU(d, sums + j), a), shifted(hn::LoadU(d, piece_sums + j), b));
      hn::StoreU(sum, d, sums + j);
      hn::StoreU(shift, d, shifts + j);
    });
  }
}

// logs[j] = the logarithm of the sum of lane j, given as sums[j]. Its value for a lane whose largest is not finite
// is not used. Sums near 1 are made again, without the terms that are 1.
template <class T>
void logs_of_sums(const T* x, int64_t n, int64_t stride, int64_t width, const T* shifts, const T* sums, double* logs) {
  const hn::ScalableTag<T> d;
  if (std::none_of(sums, sums + width, [](T sum) { return sum < kNearOne; })) {
    for (int64_t j = 0; j < width; ++j) logs[j] = std::log(static_cast<double>(sums[j]));
    return;
  }
  HWY_ALIGN T ones[kPadded] = {}, rests[kPadded] = {};
  for (int64_t i = 0; i < n; ++i)
    for_each_vector<T>(width, [&](int64_t j, int64_t count) HWY_ATTR {
      const auto y = hn::Sub(load_row<T>(d, x + i * stride + j, count), hn::LoadU(d, shifts + j));
      const auto is_one = hn::Eq(y, hn::Zero(d));
      const auto one = hn::IfThenElseZero(is_one, hn::Set(d, T(1)));
      hn::StoreU(hn::Add(hn::LoadU(d, ones + j), one), d, ones + j);
      hn::StoreU(hn::Add(hn::LoadU(d, rests + j), hn::IfThenZeroElse(is_one, exp_down(d, y))), d, rests + j);
    });
  for (int64_t j = 0; j < width; ++j)
    logs[j] = sums[j] < kNearOne ? std::log1p(static_cast<double>(rests[j]) + (static_cast<double>(ones[j]) - 1))
                                 : std::log(static_cast<double>(sums[j]));
}

template <class T>
void softmax_strip(const T* x, T* out, int64_t n, int64_t rows, int64_t stride, int64_t width) {
  HWY_ALIGN T shifts[kPadded], scales[kPadded];
  const hn::ScalableTag<T> d;
  const bool kept = n <= rows;  // the exponentials, in `out`
  if (kept)
    sum_strip<true>(x, out, n, stride, width, shifts, scales);
  else
    sum_strip_in_pieces(x, n, rows, stride, width, shifts, scales);
  for (int64_t j = 0; j < width; ++j)
    scales[j] = finite(shifts[j]) ? 1 / scales[j] : std::numeric_limits<T>::quiet_NaN();
  for (int64_t i = 0; i < n; ++i)
    for_each_vector<T>(width, [&](int64_t j, int64_t count) HWY_ATTR {
      const int64_t at = i * stride + j;
      auto y = load_row<T>(d, (kept ? out : x) + at, count);
      if (!kept) y = exp_down(d, hn::Sub(y, hn::LoadU(d, shifts + j)));
      store_row<T>(d, hn::Mul(y, hn::LoadU(d, scales + j)), out + at, count);
    });
}
template <class T>
void log_softmax_strip(const T* x, T* out, int64_t n, int64_t rows, int64_t stride, int64_t width) {
  HWY_ALIGN T shifts[kPadded], sums[kPadded], logs[kPadded];
  double log_sums[kPadded];
  const hn::ScalableTag<T> d;
  sum_strip_in_pieces(x, n, rows, stride, width, shifts, sums);
  logs_of_sums(x, n, stride, width, shifts, sums, log_sums);
  for (int64_t j = 0; j < width; ++j)
    logs[j] = finite(shifts[j]) ? static_cast<T>(log_sums[j]) : std::numeric_limits<T>::quiet_NaN();
  for (int64_t i = 0; i < n; ++i)
    for_each_vector<T>(width, [&](int64_t j, int64_t count) HWY_ATTR {
      const auto y = hn::Sub(load_row<T>(d, x + i * stride + j, count), hn::LoadU(d, shifts + j));
      store_row<T>(d, hn::Sub(y, hn::LoadU(d, logs + j)), out + i * stride + j, count);
    });
}
template <class T>
void log_sum_exp_strip(const T* x, T* results, int64_t n, int64_t rows, int64_t stride, int64_t width) {
  HWY_ALIGN T shifts[kPadded], sums[kPadded];
  double log_sums[kPadded];
  sum_strip_in_pieces(x, n, rows, stride, width, shifts, sums);
  logs_of_sums(x, n, stride, width, shifts, sums, log_sums);
  for (int64_t j = 0; j < width; ++j)
    results[j] = finite(shifts[j]) ? static_cast<T>(static_cast<double>(shifts[j]) + log_sums[j]) : shifts[j];
}

template <class T>
constexpr SoftmaxLoops<T> loops() {
  return {softmax<T>, log_softmax<T>, log_sum_exp<T>, softmax_strip<T>, log_softmax_strip<T>, log_sum_exp_strip<T>};
}

void fill_softmax(SoftmaxTable& t) { t = {loops<float>(), loops<double>()}; }

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_softmax);

template <class T>
const SoftmaxLoops<T>& softmax_loops() {
  return std::get<SoftmaxLoops<T>>(chosen_table<SoftmaxTable>([](SoftmaxTable& t) {
    HWY_DYNAMIC_DISPATCH(fill_softmax)(t);
  }));
}
template const SoftmaxLoops<float>& softmax_loops<float>();
template const SoftmaxLoops<double>& softmax_loops<double>();

}  // namespace backplane::cpu
#endif
