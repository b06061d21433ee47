// See arg_columns.hpp. Places are kept in integers as wide as the elements, beside the best values.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arg_columns.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/arg_columns.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <bool Largest, class T>
void scan_columns(const T* x, int64_t n, int64_t stride, int64_t width, int64_t* places) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Place = hn::TFromD<decltype(di)>;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T best[kArgColumns];
  HWY_ALIGN Place place[kArgColumns];
  for (int64_t j = 0; j < width; ++j) {
    best[j] = x[j];
    place[j] = 0;
  }
  for (int64_t i = 1; i < n; ++i) {
    const T* row = x + i * stride;
    const auto here = hn::Set(di, static_cast<Place>(i));
    int64_t j = 0;
    for (; j + step <= width; j += step) {
      const auto y = hn::LoadU(d, row + j), b = hn::Load(d, best + j);
      // Better, or the lane's first NaN.
      const auto beats = hn::Or(Largest ? hn::Gt(y, b) : hn::Lt(y, b), hn::AndNot(hn::IsNaN(b), hn::IsNaN(y)));
      hn::Store(hn::IfThenElse(beats, y, b), d, best + j);
      hn::Store(hn::IfThenElse(hn::RebindMask(di, beats), here, hn::Load(di, place + j)), di, place + j);
    }
    for (; j < width; ++j)
      if ((Largest ? row[j] > best[j] : row[j] < best[j]) || (row[j] != row[j] && best[j] == best[j])) {
        best[j] = row[j];
        place[j] = static_cast<Place>(i);
      }
  }
  for (int64_t j = 0; j < width; ++j) places[j] = place[j];
}

void columns_of_float(bool largest, const float* x, int64_t n, int64_t stride, int64_t width, int64_t* places) {
  (largest ? scan_columns<true, float> : scan_columns<false, float>)(x, n, stride, width, places);
}
void columns_of_double(bool largest, const double* x, int64_t n, int64_t stride, int64_t width, int64_t* places) {
  (largest ? scan_columns<true, double> : scan_columns<false, double>)(x, n, stride, width, places);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(columns_of_float);
HWY_EXPORT(columns_of_double);

void arg_columns(bool largest, const float* x, int64_t n, int64_t stride, int64_t width, int64_t* places) {
  HWY_DYNAMIC_DISPATCH(columns_of_float)(largest, x, n, stride, width, places);
}
void arg_columns(bool largest, const double* x, int64_t n, int64_t stride, int64_t width, int64_t* places) {
  HWY_DYNAMIC_DISPATCH(columns_of_double)(largest, x, n, stride, width, places);
}

}  // namespace backplane::cpu
#endif
