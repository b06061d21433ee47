// layer_norm and rms_norm over trailing axes and batch_norm, for float32 and float64; other cases go by decomposition.
//
// Means and variances are added in double, the variance from the deviations (two passes), so that a large mean costs no
// digits.
#include <cmath>

#include "kernels/axis_block.hpp"
#include "kernels/families.hpp"

namespace backplane::cpu {
namespace {

constexpr bp_dtype_mask kDtypes = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64);

template <class T>
const T* elements(const bp_value& value) {
  return value.tag == BP_TAG_TENSOR ? reinterpret_cast<const T*>(data_of(value.u.t)) : nullptr;
}
template <class T>
T* target(const bp_value& value) {
  return value.tag == BP_TAG_TENSOR ? reinterpret_cast<T*>(data_of(value.u.t)) : nullptr;
}

// Four chains: one addition of doubles takes as long as four that do not wait for each other.
template <class T, class F>
double sum_of(const T* x, int64_t n, F&& f) {
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int64_t j = 0; j < 4; ++j) sums[j] += f(static_cast<double>(x[i + j]));
  for (; i < n; ++i) sums[0] += f(static_cast<double>(x[i]));
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class T>
void normalize_row(const T* x, const T* weight, const T* bias, double eps, T* out, int64_t n) {
  const double mean = sum_of(x, n, [](double v) { return v; }) / static_cast<double>(n);
  const double variance = sum_of(x, n, [mean](double v) { return (v - mean) * (v - mean); }) / static_cast<double>(n);
  const T shift = static_cast<T>(mean), scale = static_cast<T>(1 / std::sqrt(variance + eps));
  for (int64_t i = 0; i < n; ++i) {
    const T y = (x[i] - shift) * scale;
    out[i] = y * (weight != nullptr ? weight[i] : T(1)) + (bias != nullptr ? bias[i] : T(0));
  }
}

template <class T>
void scale_row(const T* x, const T* weight, double eps, T* out, int64_t n) {
  const double square = sum_of(x, n, [](double v) { return v * v; }) / static_cast<double>(n);
  const T scale = static_cast<T>(1 / std::sqrt(square + eps));
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * scale * (weight != nullptr ? weight[i] : T(1));
}

// row(number) for the blocks of x along trailing axes.
template <class Row>
void for_each_block(const bp_frame* frame, const AxisBlock& block, Row&& row) {
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) row(i * block.n);
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / (2 * block.n), 1);
  if (block.outer <= grain) return range(0, block.outer);
  plugin::parallel_for(frame, 0, block.outer, grain, range);
}

// layer_norm(Tensor x, Tensor? weight, Tensor? bias, *, Axes axis, Scalar eps)
bp_status BP_CALL layer_norm(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    if (x->nbytes == 0) return;
    const AxisBlock block = axis_block(x, args[3]);
    const double eps = plugin::as_double(args[4]);
    plugin::dispatch_dtype<kDtypes>(x->dtype, [&]<class T>() {
      for_each_block(frame, block, [&](int64_t at) {
        normalize_row(elements<T>(args[0]) + at, elements<T>(args[1]), elements<T>(args[2]), eps,
                      target<T>(outs[0]) + at, block.n);
      });
    });
  });
}

// rms_norm(Tensor x, Tensor? weight, *, Axes axis, Scalar eps)
bp_status BP_CALL rms_norm(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    if (x->nbytes == 0) return;
    const AxisBlock block = axis_block(x, args[2]);
    const double eps = plugin::as_double(args[3]);
    plugin::dispatch_dtype<kDtypes>(x->dtype, [&]<class T>() {
      for_each_block(frame, block, [&](int64_t at) {
        scale_row(elements<T>(args[0]) + at, elements<T>(args[1]), eps, target<T>(outs[0]) + at, block.n);
      });
    });
  });
}

// Takes trailing axes, with a weight (and bias) of just their shape; the axes are the argument number `Axes`.
template <int Axes>
bp_status BP_CALL supports_trailing(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const bp_tensor* x = args[0].tag == BP_TAG_TENSOR ? args[0].u.t : nullptr;
  bool fits = x != nullptr && x->dl.ndim > 0 && args[Axes].count > 0;
  if (fits) {
    const AxisBlock block = axis_block(x, args[Axes]);
    fits = block.neighbours && block.inner == 1;
  }
  for (int i = 1; i < Axes; ++i) {
    if (args[i].tag == BP_TAG_ABSENT) continue;
    fits = fits && args[i].tag == BP_TAG_TENSOR && args[i].u.t->dl.ndim == static_cast<int32_t>(args[Axes].count);
    for (int32_t d = 0; fits && d < args[i].u.t->dl.ndim; ++d)
      fits = args[i].u.t->dl.shape[d] == x->dl.shape[x->dl.ndim - args[i].u.t->dl.ndim + d];
  }
  if (fits) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes the last axes, with weight and bias of their shape");
  return BP_ERROR_NOT_IMPLEMENTED;
}

// x (n, c, rest): one channel, in n pieces of `rest` neighbours.
template <class T>
struct Channel {
  const T* first;
  int64_t pieces, rest, step;

  template <class F>
  double sum(F&& f) const {
    double total = 0;
    for (int64_t i = 0; i < pieces; ++i) total += sum_of(first + i * step, rest, f);
    return total;
  }
};

template <class T>
void normalize_channels(const bp_frame* frame, const bp_tensor* x, const bp_value* args, const bp_value* outs) {
  const int64_t channels = x->dl.shape[1], pieces = x->dl.shape[0];
  int64_t rest = 1;
  for (int32_t d = 2; d < x->dl.ndim; ++d) rest *= x->dl.shape[d];
  const int64_t step = channels * rest;
  const double eps = plugin::as_double(args[3]), count = static_cast<double>(pieces * rest);
  const T *weight = elements<T>(args[1]), *bias = elements<T>(args[2]);
  T *y = target<T>(outs[0]), *means = target<T>(outs[1]), *variances = target<T>(outs[2]);
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const Channel<T> channel{elements<T>(args[0]) + c * rest, pieces, rest, step};
      const double mean = channel.sum([](double v) { return v; }) / count;
      const double variance = channel.sum([mean](double v) { return (v - mean) * (v - mean); }) / count;
      if (means != nullptr) means[c] = static_cast<T>(mean);
      if (variances != nullptr) variances[c] = static_cast<T>(variance);
      if (y == nullptr) continue;
      const T shift = static_cast<T>(mean);
      const T scale = static_cast<T>(1 / std::sqrt(variance + eps)) * (weight != nullptr ? weight[c] : T(1));
      const T offset = bias != nullptr ? bias[c] : T(0);
      for (int64_t i = 0; i < pieces; ++i) {
        const T* from = channel.first + i * step;
        T* to = y + c * rest + i * step;
        for (int64_t j = 0; j < rest; ++j) to[j] = (from[j] - shift) * scale + offset;
      }
    }
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / std::max<int64_t>(2 * pieces * rest, 1), 1);
  if (channels <= grain) return range(0, channels);
  plugin::parallel_for(frame, 0, channels, grain, range);
}

// batch_norm(Tensor x, Tensor? weight, Tensor? bias, *, Scalar eps) -> (y, mean, var); over no elements mean and var
// are NaN.
bp_status BP_CALL batch_norm(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    plugin::dispatch_dtype<kDtypes>(x->dtype, [&]<class T>() { normalize_channels<T>(frame, x, args, outs); });
  });
}

}  // namespace

void register_norm(const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::layer_norm", "cpu", layer_norm, .dtypes = kDtypes, .supports = supports_trailing<3>));
  registrar.kernel(BP_KERNEL("bp::rms_norm", "cpu", rms_norm, .dtypes = kDtypes, .supports = supports_trailing<2>));
  registrar.kernel(BP_KERNEL("bp::batch_norm", "cpu", batch_norm, .dtypes = kDtypes));
}

}  // namespace backplane::cpu
