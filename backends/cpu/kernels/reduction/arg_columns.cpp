// See arg_columns.hpp. Places are kept in integers as wide as the elements, beside the best values.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduction/arg_columns.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <tuple>

#include "kernels/reduction/arg_columns.hpp"
#include "simd/chosen_table.hpp"
#include "simd/half_vectors-inl.hpp"

#ifndef BACKPLANE_CPU_ARG_LOOPS
#define BACKPLANE_CPU_ARG_LOOPS
namespace backplane::cpu {
using ArgTable = std::tuple<ArgLoops<plugin::float16>, ArgLoops<plugin::bfloat16>, ArgLoops<float>, ArgLoops<double>>;
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <bool Largest, class S>
void scan_columns(const S* x, int64_t n, int64_t stride, int64_t width, int64_t* places) {
  using T = plugin::Compute<S>;
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Place = hn::TFromD<decltype(di)>;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T best[kArgColumns];
  HWY_ALIGN Place place[kArgColumns];
  for (int64_t j = 0; j < width; ++j) {
    best[j] = static_cast<T>(x[j]);
    place[j] = 0;
  }
  for (int64_t i = 1; i < n; ++i) {
    const S* row = x + i * stride;
    const auto here = hn::Set(di, static_cast<Place>(i));
    int64_t j = 0;
    for (; j + step <= width; j += step) {
      const auto y = widen(d, row + j), b = hn::Load(d, best + j);
      // Better, or the lane's first NaN.
      const auto beats = hn::Or(Largest ? hn::Gt(y, b) : hn::Lt(y, b), hn::AndNot(hn::IsNaN(b), hn::IsNaN(y)));
      hn::Store(hn::IfThenElse(beats, y, b), d, best + j);
      hn::Store(hn::IfThenElse(hn::RebindMask(di, beats), here, hn::Load(di, place + j)), di, place + j);
    }
    for (; j < width; ++j) {
      const T y = static_cast<T>(row[j]);
      if ((Largest ? y > best[j] : y < best[j]) || (y != y && best[j] == best[j])) {
        best[j] = y;
        place[j] = static_cast<Place>(i);
      }
    }
  }
  for (int64_t j = 0; j < width; ++j) places[j] = place[j];
}
template <class S>
void columns(bool largest, const S* x, int64_t n, int64_t stride, int64_t width, int64_t* places) {
  (largest ? scan_columns<true, S> : scan_columns<false, S>)(x, n, stride, width, places);
}

template <class S>
int64_t place(const S* x, int64_t n, plugin::Compute<S> value) {
  const hn::ScalableTag<plugin::Compute<S>> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto wanted = hn::Set(d, value);
  const auto hit = [&](int64_t i) HWY_ATTR {
    const auto y = widen(d, x + i);
    return hn::Or(hn::Eq(y, wanted), hn::IsNaN(y));
  };
  int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step)
    if (!hn::AllFalse(d, hn::Or(hn::Or(hit(i), hit(i + step)), hn::Or(hit(i + 2 * step), hit(i + 3 * step))))) break;
  for (; i + step <= n; i += step)
    if (const auto mask = hit(i); !hn::AllFalse(d, mask))
      return i + static_cast<int64_t>(hn::FindKnownFirstTrue(d, mask));
  const auto found = [&](int64_t at) {
    const auto y = static_cast<plugin::Compute<S>>(x[at]);
    return y == value || y != y;
  };
  while (!found(i)) ++i;
  return i;
}

template <class S>
void fill_one(ArgLoops<S>& t) {
  t = {columns<S>, place<S>};
}
void fill_arg_loops(ArgTable& t) {
  std::apply([](auto&... each) { (fill_one(each), ...); }, t);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_arg_loops);

template <class S>
const ArgLoops<S>& arg_loops() {
  return std::get<ArgLoops<S>>(chosen_table<ArgTable>([](ArgTable& t) { HWY_DYNAMIC_DISPATCH(fill_arg_loops)(t); }));
}
template const ArgLoops<plugin::float16>& arg_loops<plugin::float16>();
template const ArgLoops<plugin::bfloat16>& arg_loops<plugin::bfloat16>();
template const ArgLoops<float>& arg_loops<float>();
template const ArgLoops<double>& arg_loops<double>();

}  // namespace backplane::cpu
#endif
