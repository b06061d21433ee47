// batch_norm and batch_norm_inference: a mean and a variance per channel of x (n, c, *). Half floats are computed in
// float32.
//
// Where the channels are the last axis they lie side by side, and are taken in strips.
#include <cmath>

#include "kernels/families.hpp"
#include "kernels/nn/norm_operands.hpp"
#include "kernels/reduction/moments.hpp"
#include "loops/conv_step.hpp"

namespace backplane::cpu {
namespace {

// One channel is `pieces` rows of `rest` neighbours, `step()` apart.
struct Image {
  int64_t pieces, channels, rest;
  explicit Image(const bp_tensor* x) : pieces(x->dl.shape[0]), channels(x->dl.shape[1]), rest(1) {
    for (int32_t d = 2; d < x->dl.ndim; ++d) rest *= x->dl.shape[d];
  }
  int64_t step() const { return channels * rest; }
  double count() const { return static_cast<double>(pieces * rest); }
};

// range(begin, end) over `n` parts of `cost` elements each.
template <class Range>
void in_parallel(const bp_frame* frame, int64_t n, int64_t cost, Range&& range) {
  const int64_t grain = std::max<int64_t>(kCheapGrain / std::max<int64_t>(cost, 1), 1);
  if (n <= grain) return range(0, n);
  plugin::parallel_for(frame, 0, n, grain, range);
}

// The map of a channel: (x - shift) * scale + offset.
template <class S>
struct ChannelFactors {
  using C = plugin::Compute<S>;
  Scratch<C> all;
  int64_t channels;
  explicit ChannelFactors(int64_t n) : all(3 * n), channels(n) {}
  C* shifts() const { return all.get(); }
  C* scales() const { return all.get() + channels; }
  C* offsets() const { return all.get() + 2 * channels; }
  void set(int64_t c, const Moments& m, double eps, const NormOperand<S>& weight, const NormOperand<S>& bias) const {
    shifts()[c] = static_cast<C>(m.mean);
    scales()[c] = static_cast<C>(1 / m.spread(eps)) * weight.at(c, C(1));
    offsets()[c] = bias.at(c, C(0));
  }
};

template <class S>
void normalize_channel(const Image& image, const ChannelFactors<S>& f, int64_t c, int64_t piece, const S* x, S* out) {
  const int64_t at = piece * image.step() + c * image.rest;
  moment_loops<S>().normalize_channel(x + at, f.shifts()[c], f.scales()[c], f.offsets()[c], out + at, image.rest);
}
template <class S>
void normalize_pieces(const bp_frame* frame, const Image& image, const ChannelFactors<S>& f, const S* x, S* out) {
  in_parallel(frame, image.pieces, image.step(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * image.step();
      if (image.rest == 1) {
        moment_loops<S>().normalize_lanes(x + at, f.shifts(), f.scales(), f.offsets(), out + at, image.channels);
        continue;
      }
      for (int64_t c = 0; c < image.channels; ++c) normalize_channel(image, f, c, i, x, out);
    }
  });
}

template <class S>
Moments channel_moments(const Image& image, const S* first) {
  return moments(
      guess_mean(first, image.rest), image.count(),
      [&](auto shift) {
        Distances all{0, 0};
        for (int64_t i = 0; i < image.pieces; ++i)
          all += moment_loops<S>().distances(first + i * image.step(), shift, image.rest);
        return all;
      },
      [&](auto&& f) {
        double all = 0;
        for (int64_t i = 0; i < image.pieces; ++i) all += exact_sum(first + i * image.step(), image.rest, 1, f);
        return all;
      });
}

// A channel is normalised by the thread that has just read it.
template <class S, class Take>
void by_channel(const bp_frame* frame, const Image& image, const ChannelFactors<S>& f, const S* x, S* y, Take&& take) {
  in_parallel(frame, image.channels, 2 * image.pieces * image.rest, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      take(c, channel_moments(image, x + c * image.rest));
      for (int64_t i = 0; y != nullptr && i < image.pieces; ++i) normalize_channel(image, f, c, i, x, y);
    }
  });
}
template <class S, class Take>
void by_strip(const bp_frame* frame, const Image& image, const S* x, Take&& take) {
  const int64_t width = std::clamp<int64_t>(image.channels, 1, kMomentStrip),
                strips = (image.channels + width - 1) / width;
  in_parallel(frame, strips, image.pieces * width, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * width;
      const Strip<S> strip{x + first, image.pieces, image.channels, std::min(width, image.channels - first)};
      strip_moments(strip, [&](int64_t j, const Moments& m) { take(first + j, m); });
    }
  });
}

// batch_norm(Tensor x, Tensor? weight, Tensor? bias, *, Scalar eps) -> (y, mean, var); over no elements mean and var
// are NaN.
template <class S>
void train(const bp_frame* frame, const bp_value* args, const bp_value* outs) {
  const Image image(plugin::as_tensor(args[0]));
  const S* x = elements<S>(args[0]);
  S *y = elements<S>(outs[0]), *means = elements<S>(outs[1]), *variances = elements<S>(outs[2]);
  const double eps = plugin::as_double(args[3]);
  const NormOperand<S> weight(args[1]), bias(args[2]);
  const ChannelFactors<S> factors(image.channels);
  const auto take = [&](int64_t c, const Moments& m) {
    using C = plugin::Compute<S>;
    if (means != nullptr) means[c] = static_cast<S>(static_cast<C>(m.mean));
    if (variances != nullptr) variances[c] = static_cast<S>(static_cast<C>(m.whole_variance()));
    factors.set(c, m, eps, weight, bias);
  };
  if (image.pieces * image.rest == 0) {
    for (int64_t c = 0; c < image.channels; ++c) take(c, {NAN, NAN});
  } else if (image.rest > 1) {
    by_channel(frame, image, factors, x, y, take);
  } else {
    by_strip(frame, image, x, take);
    if (y != nullptr) normalize_pieces(frame, image, factors, x, y);
  }
}
bp_status BP_CALL batch_norm(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    plugin::dispatch_dtype<BP_MASK_FLOATING>(plugin::as_tensor(args[0])->dtype,
                                             [&]<class S>() { train<S>(frame, args, outs); });
  });
}

// batch_norm_inference(Tensor x, Tensor mean, Tensor var, Tensor? weight, Tensor? bias, *, Scalar eps)
bp_status BP_CALL batch_norm_inference(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    if (x->nbytes == 0) return;
    const Image image(x);
    plugin::dispatch_dtype<BP_MASK_FLOATING>(x->dtype, [&]<class S>() {
      const NormOperand<S> mean(args[1]), variance(args[2]), weight(args[3]), bias(args[4]);
      const ChannelFactors<S> factors(image.channels);
      for (int64_t c = 0; c < image.channels; ++c)
        factors.set(c, {static_cast<double>(mean.get()[c]), static_cast<double>(variance.get()[c])},
                    plugin::as_double(args[5]), weight, bias);
      normalize_pieces(frame, image, factors, elements<S>(args[0]), elements<S>(outs[0]));
    });
  });
}

// Takes a mean, a variance, and a weight and bias where there are any, of one element per channel.
bp_status BP_CALL supports_inference(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  bool fits = args[0].tag == BP_TAG_TENSOR && args[0].u.t->dl.ndim >= 2;
  for (int i = 1; i <= 4; ++i) {
    if (args[i].tag == BP_TAG_ABSENT) continue;
    fits = fits && args[i].tag == BP_TAG_TENSOR && args[i].u.t->dl.ndim == 1 &&
           args[i].u.t->dl.shape[0] == args[0].u.t->dl.shape[1];
  }
  if (fits) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes a number per channel of x (n, c, *)");
  return BP_ERROR_NOT_IMPLEMENTED;
}

}  // namespace

const ConvStepOp kNormalization("bp::batch_norm_inference", ConvRole::kNormalize);

const Family kBatchNorm([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::batch_norm", "cpu", batch_norm, .dtypes = BP_MASK_FLOATING));
  registrar.kernel(BP_KERNEL("bp::batch_norm_inference", "cpu", batch_norm_inference, .dtypes = BP_MASK_FLOATING,
                             .supports = supports_inference));
});

}  // namespace backplane::cpu
