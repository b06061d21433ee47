// batch_norm_grad: the adjoint of batch_norm, channel by channel of x (n, c, *), in three passes over what stays in the
// cache. float32 and float64; the half floats, and x of two axes, go by the decomposition.
#include <cmath>

#include "kernels/batch_norm_loops.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/families.hpp"
#include "kernels/moments.hpp"

namespace backplane::cpu {
namespace {

template <class T>
Moments rows_moments(const ChannelRows<T>& rows) {
  return moments(
      guess_mean(rows.x, rows.rest), static_cast<double>(rows.pieces * rows.rest),
      [&](T shift) {
        Distances all{0, 0};
        for (int64_t i = 0; i < rows.pieces; ++i)
          all += moment_loops<T>().distances(rows.x + i * rows.step, shift, rows.rest);
        return all;
      },
      [&](auto&& f) {
        double all = 0;
        for (int64_t i = 0; i < rows.pieces; ++i) all += exact_sum(rows.x + i * rows.step, rows.rest, 1, f);
        return all;
      });
}

template <class T>
const T* given(const bp_value& value) {
  return value.tag == BP_TAG_TENSOR ? reinterpret_cast<const T*>(data_of(value.u.t)) : nullptr;
}

// (Tensor g, Tensor x, Tensor? weight, *, Scalar eps) -> (x_grad, weight_grad, bias_grad), any of which may not be
// wanted.
template <class T>
void run(const bp_frame* frame, const bp_value* args, const bp_value* outs) {
  const bp_tensor* tensor = plugin::as_tensor(args[1]);
  const int64_t channels = tensor->dl.shape[1];
  ChannelRows<T> whole{given<T>(args[0]), given<T>(args[1]), tensor->dl.shape[0], 1, 0};
  for (int32_t d = 2; d < tensor->dl.ndim; ++d) whole.rest *= tensor->dl.shape[d];
  whole.step = channels * whole.rest;
  const T* weight = given<T>(args[2]);
  const double eps = plugin::as_double(args[3]), count = static_cast<double>(whole.pieces * whole.rest);
  T *x_grad = const_cast<T*>(given<T>(outs[0])), *weight_grad = const_cast<T*>(given<T>(outs[1]));
  T* bias_grad = const_cast<T*>(given<T>(outs[2]));
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      ChannelRows<T> rows = whole;
      rows.g += c * rows.rest;
      rows.x += c * rows.rest;
      const Moments m = rows_moments(rows);
      const double r = 1 / std::sqrt(m.variance + eps);
      const GradSums sums = batch_norm_loops<T>().sums(rows, static_cast<T>(m.mean));
      if (weight_grad != nullptr) weight_grad[c] = static_cast<T>(r * sums.gx);
      if (bias_grad != nullptr) bias_grad[c] = static_cast<T>(sums.g);
      if (x_grad == nullptr) continue;
      const double a = (weight != nullptr ? static_cast<double>(weight[c]) : 1.0) * r;
      batch_norm_loops<T>().combine(rows, static_cast<T>(m.mean), static_cast<T>(a),
                                    static_cast<T>(-a * r * r * sums.gx / count), static_cast<T>(-a * sums.g / count),
                                    x_grad + c * rows.rest);
    }
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / (4 * whole.pieces * whole.rest), 1);
  if (channels <= grain) return range(0, channels);
  plugin::parallel_for(frame, 0, channels, grain, range);
}

bp_status BP_CALL batch_norm_grad(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    plugin::dispatch_dtype<BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64)>(
        plugin::as_tensor(args[1])->dtype, [&]<class T>() { run<T>(frame, args, outs); });
  });
}

// Takes images of some pixels, cotangents of their shape, and a weight per channel or none.
bp_status BP_CALL supports_images(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const bool tensors = args[0].tag == BP_TAG_TENSOR && args[1].tag == BP_TAG_TENSOR;
  bool fits =
      tensors && args[1].u.t->dl.ndim > 2 && args[1].u.t->nbytes > 0 && args[0].u.t->dl.ndim == args[1].u.t->dl.ndim;
  for (int32_t d = 0; fits && d < args[1].u.t->dl.ndim; ++d)
    fits = args[0].u.t->dl.shape[d] == args[1].u.t->dl.shape[d];
  if (fits && args[2].tag != BP_TAG_ABSENT)
    fits = args[2].tag == BP_TAG_TENSOR && args[2].u.t->dl.ndim == 1 &&
           args[2].u.t->dl.shape[0] == args[1].u.t->dl.shape[1];
  if (fits) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED,
                         "takes images (n, c, *) that are not empty, and a weight per channel");
  return BP_ERROR_NOT_IMPLEMENTED;
}

}  // namespace

void register_batch_norm_grad(const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::batch_norm_grad", "cpu", batch_norm_grad,
                             .dtypes = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64),
                             .supports = supports_images));
}

}  // namespace backplane::cpu
