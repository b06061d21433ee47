// See attention_rows.hpp. A row whose scores are all -inf has weights 0; a NaN among them makes its sum NaN.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/attention_rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "kernels/nn/attention_rows.hpp"
#include "simd/chosen_table.hpp"
#include "simd/exp_down-inl.hpp"

#ifndef BACKPLANE_CPU_ATTENTION
#define BACKPLANE_CPU_ATTENTION
namespace backplane::cpu {
using AttentionTable = std::tuple<AttentionLoops<float>, AttentionLoops<double>>;
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

// body(first, count) for whole vectors, and once more for what remains.
template <class D, class Body>
HWY_INLINE void for_each_vector(D d, int64_t n, Body&& body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, lanes);
  if (i < n) body(i, n - i);
}
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load(D d, const T* x, int64_t count) {
  return count == static_cast<int64_t>(hn::Lanes(d)) ? hn::LoadU(d, x)
                                                     : hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, x);
}
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store(D d, hn::Vec<D> v, T* x, int64_t count) {
  if (count == static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(v, d, x);
  else
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, x);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> score(D d, const T* row, const T* bias, hn::Vec<D> scale, int64_t i, int64_t count) {
  const auto x = load(d, row + i, count);
  return bias == nullptr ? hn::Mul(x, scale) : hn::MulAdd(x, scale, load(d, bias + i, count));
}

// exp(x) for x <= 0, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V weight(D d, V x) {
  return hn::IfThenElse(hn::Eq(x, x), exp_down(d, x), x);
}

template <class T>
T absorb(T* row, int64_t n, T scale, const T* bias, RowState<T>& state) {
  const hn::ScalableTag<T> d;
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  const auto factor = hn::Set(d, scale), none = hn::Set(d, kNone);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), fours = n / (4 * lanes) * (4 * lanes);
  auto top = none, second = none, third = none, fourth = none;  // four chains of maxima do not wait for each other
  for (int64_t i = 0; i < fours; i += 4 * lanes) {
    top = hn::Max(top, score(d, row, bias, factor, i, lanes));
    second = hn::Max(second, score(d, row, bias, factor, i + lanes, lanes));
    third = hn::Max(third, score(d, row, bias, factor, i + 2 * lanes, lanes));
    fourth = hn::Max(fourth, score(d, row, bias, factor, i + 3 * lanes, lanes));
  }
  top = hn::Max(hn::Max(top, second), hn::Max(third, fourth));
  for_each_vector(d, n - fours, [&](int64_t i, int64_t count) HWY_ATTR {
    const auto s = score(d, row, bias, factor, fours + i, count);
    top = hn::Max(top, count == lanes ? s : hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count)), s, none));
  });
  const T before = state.largest, largest = std::max(before, hn::GetLane(hn::MaxOfLanes(d, top)));
  state.largest = largest;
  const auto shift = hn::Set(d, largest == kNone ? T(0) : largest);
  auto sum = hn::Zero(d);
  for_each_vector(d, n, [&](int64_t i, int64_t count) HWY_ATTR {
    const auto w = weight(d, hn::Sub(score(d, row, bias, factor, i, count), shift));
    const bool whole = count == static_cast<int64_t>(hn::Lanes(d));
    sum = hn::Add(sum, whole ? w : hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(count)), w));
    store(d, w, row + i, count);
  });
  const T shrink = before == largest ? T(1) : std::exp(before - largest);
  state.sum = state.sum * shrink + hn::GetLane(hn::SumOfLanes(d, sum));
  return shrink;
}

template <class T>
void recall(T* row, int64_t n, T scale, const T* bias, T log_sum) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, scale);
  const auto shift = hn::Set(d, log_sum == -std::numeric_limits<T>::infinity() ? -log_sum : log_sum);
  for_each_vector(d, n, [&](int64_t i, int64_t count) HWY_ATTR {
    store(d, VectorExp::call(d, hn::Sub(score(d, row, bias, factor, i, count), shift)), row + i, count);
  });
}

template <class T>
void slope(const T* weights, T* slopes, int64_t n, T delta, T scale) {
  const hn::ScalableTag<T> d;
  const auto shift = hn::Set(d, delta), factor = hn::Set(d, scale);
  for_each_vector(d, n, [&](int64_t i, int64_t count) HWY_ATTR {
    const auto w = hn::Mul(load(d, weights + i, count), factor);
    store(d, hn::Mul(w, hn::Sub(load(d, slopes + i, count), shift)), slopes + i, count);
  });
}

template <class T>
void multiply(T* row, int64_t n, T factor) {
  const hn::ScalableTag<T> d;
  const auto by = hn::Set(d, factor);
  for_each_vector(
      d, n, [&](int64_t i, int64_t count) HWY_ATTR { store(d, hn::Mul(load(d, row + i, count), by), row + i, count); });
}

template <class T>
constexpr AttentionLoops<T> loops() {
  return {absorb<T>, recall<T>, slope<T>, multiply<T>};
}

void fill_attention(AttentionTable& t) { t = {loops<float>(), loops<double>()}; }

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_attention);

template <class T>
const AttentionLoops<T>& attention_loops() {
  return std::get<AttentionLoops<T>>(chosen_table<AttentionTable>([](AttentionTable& t) {
    HWY_DYNAMIC_DISPATCH(fill_attention)(t);
  }));
}
template const AttentionLoops<float>& attention_loops<float>();
template const AttentionLoops<double>& attention_loops<double>();

}  // namespace backplane::cpu
#endif
