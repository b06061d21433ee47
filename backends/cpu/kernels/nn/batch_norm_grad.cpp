// batch_norm_grad: the adjoint of batch_norm, channel by channel of x (n, c, *), in three passes over what stays in the
// cache. x of two axes goes by the decomposition.
#include <cmath>

#include "kernels/families.hpp"
#include "kernels/nn/batch_norm_loops.hpp"
#include "kernels/nn/norm_adjoint.hpp"
#include "kernels/nn/norm_operands.hpp"
#include "kernels/reduction/moments.hpp"
#include "loops/elementwise.hpp"

namespace backplane::cpu {
namespace {

template <class S>
Moments rows_moments(const ChannelRows<S>& rows) {
  return moments(
      guess_mean(rows.x, rows.rest), static_cast<double>(rows.pieces * rows.rest),
      [&](plugin::Compute<S> shift) {
        Distances all{0, 0};
        for (int64_t i = 0; i < rows.pieces; ++i)
          all += moment_loops<S>().distances(rows.x + i * rows.step, shift, rows.rest);
        return all;
      },
      [&](auto&& f) {
        double all = 0;
        for (int64_t i = 0; i < rows.pieces; ++i) all += exact_sum(rows.x + i * rows.step, rows.rest, 1, f);
        return all;
      });
}

// (Tensor g, Tensor x, Tensor? weight, *, Scalar eps) -> (x_grad, weight_grad, bias_grad). Any of them may be
// unwanted.
template <class S>
void run(const bp_frame* frame, const bp_value* args, const bp_value* outs) {
  using C = plugin::Compute<S>;
  const bp_tensor* tensor = plugin::as_tensor(args[1]);
  const int64_t channels = tensor->dl.shape[1];
  ChannelRows<S> whole{elements<const S>(args[0]), elements<const S>(args[1]), tensor->dl.shape[0], 1, 0};
  for (int32_t d = 2; d < tensor->dl.ndim; ++d) whole.rest *= tensor->dl.shape[d];
  whole.step = channels * whole.rest;
  const S* weight = elements<const S>(args[2]);
  const double eps = plugin::as_double(args[3]), count = static_cast<double>(whole.pieces * whole.rest);
  S *x_grad = elements<S>(outs[0]), *weight_grad = elements<S>(outs[1]), *bias_grad = elements<S>(outs[2]);
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const int64_t first = c * whole.rest;
      const ChannelRows<S> rows{whole.g + first, whole.x + first, whole.pieces, whole.rest, whole.step};
      const Moments m = rows_moments(rows);
      const double spread = m.spread(eps), r = 1 / spread;
      const double factor = weight != nullptr ? static_cast<double>(static_cast<C>(weight[c])) : 1.0;
      if (!is_ordinary<C>(spread)) [[unlikely]] {
        const NormAdjoint<S> adjoint(rows, m.mean, spread);
        if (weight_grad != nullptr) weight_grad[c] = static_cast<S>(static_cast<C>(adjoint.sums().gx));
        if (bias_grad != nullptr) bias_grad[c] = static_cast<S>(static_cast<C>(adjoint.sums().g));
        if (x_grad != nullptr) adjoint.store(factor, x_grad + first);
        continue;
      }
      const GradSums sums = batch_norm_loops<S>().sums(rows, static_cast<C>(m.mean));
      if (weight_grad != nullptr) weight_grad[c] = static_cast<S>(static_cast<C>(r * sums.gx));
      if (bias_grad != nullptr) bias_grad[c] = static_cast<S>(static_cast<C>(sums.g));
      if (x_grad == nullptr) continue;
      const double a = factor * r;
      batch_norm_loops<S>().combine(rows, static_cast<C>(m.mean), static_cast<C>(a),
                                    static_cast<C>(-a * r * r * sums.gx / count), static_cast<C>(-a * sums.g / count),
                                    x_grad + first);
    }
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / (4 * whole.pieces * whole.rest), 1);
  if (channels <= grain) return range(0, channels);
  plugin::parallel_for(frame, 0, channels, grain, range);
}

bp_status BP_CALL batch_norm_grad(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    plugin::dispatch_dtype<BP_MASK_FLOATING>(plugin::as_tensor(args[1])->dtype,
                                             [&]<class S>() { run<S>(frame, args, outs); });
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

const Family kBatchNormGrad([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::batch_norm_grad", "cpu", batch_norm_grad, .dtypes = BP_MASK_FLOATING,
                             .supports = supports_images));
});

}  // namespace backplane::cpu
