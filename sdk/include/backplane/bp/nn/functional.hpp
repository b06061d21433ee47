// nn::functional: PyTorch's functions of neural networks, with its arguments in its order, and nn::init.
#pragma once

#include <cmath>

#include "backplane/bp/creation.hpp"
#include "backplane/bp/printing.hpp"
#include "backplane/bp/transforms.hpp"

namespace bp::nn {

enum class Reduction : uint8_t { kMean, kSum, kNone };
inline constexpr Reduction kMean = Reduction::kMean, kSum = Reduction::kSum, kNone = Reduction::kNone;

namespace functional {

using bp::elu;
using bp::gelu;
using bp::hardswish;
using bp::hardtanh;
using bp::leaky_relu;
using bp::linear;
using bp::log_softmax;
using bp::mish;
using bp::relu;
using bp::relu6;
using bp::selu;
using bp::sigmoid;
using bp::silu;
using bp::softmax;
using bp::softplus;
using bp::tanh;

namespace detail {
inline Tensor reduced(const Tensor& losses, Reduction reduction) {
  return reduction == Reduction::kMean ? losses.mean() : reduction == Reduction::kSum ? losses.sum() : losses;
}
// One number for both axes of an image, or one each.
inline std::array<int64_t, 2> pair(const char* who, IntList sizes) {
  const std::span<const int64_t> list = sizes.span();
  BP_CHECK(list.size() == 1 || list.size() == 2, VALUE, who, ": found ", list.size(), " sizes, expected 1 or 2");
  return {list.front(), list.back()};
}
}  // namespace detail

inline Tensor dropout(const Tensor& x, double p = 0.5, bool training = true) {
  return training && p > 0 ? bp::dropout(x, p) : x;
}
inline Tensor embedding(const Tensor& indices, const Tensor& weight) { return bp::embedding(weight, indices); }
inline Tensor layer_norm(const Tensor& x, IntList normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                         double eps = 1e-5) {
  const std::span<const int64_t> shape = normalized_shape.span();
  const std::vector<int64_t> sizes = x.sizes();
  BP_CHECK(shape.size() <= sizes.size() && std::equal(shape.rbegin(), shape.rend(), sizes.rbegin()), SHAPE,
           "layer_norm: the last axes of x differ from normalized_shape; found the shape ", bp::detail::shown_shape(x));
  std::vector<int64_t> axes;
  for (size_t i = 0; i < shape.size(); ++i)
    axes.push_back(static_cast<int64_t>(i) - static_cast<int64_t>(shape.size()));
  return bp::layer_norm(x, weight, bias, axes, eps);
}
// x: (n, channels, height, width) or without n.
inline Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, IntList stride = 1,
                     IntList padding = 0, IntList dilation = 1, int64_t groups = 1) {
  if (x.dim() == 3) return conv2d(x.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0);
  const auto strides = detail::pair("conv2d: stride", stride), paddings = detail::pair("conv2d: padding", padding);
  const auto dilations = detail::pair("conv2d: dilation", dilation);
  const Tensor y = bp::conv2d(x, weight, std::span<const int64_t>(strides), std::span<const int64_t>(paddings),
                              std::span<const int64_t>(dilations), groups);
  return bias.defined() ? y + bias.reshape({-1, 1, 1}) : y;
}
inline Tensor max_pool2d(const Tensor& x, IntList kernel, OptionalIntList stride = {}, IntList padding = 0) {
  const auto sizes = detail::pair("max_pool2d: kernel", kernel),
             paddings = detail::pair("max_pool2d: padding", padding);
  const backplane::OptionalInts given = stride;
  const auto strides = given.list ? detail::pair("max_pool2d: stride", given.list->list) : sizes;
  return bp::max_pool2d(x, std::span<const int64_t>(sizes), std::span<const int64_t>(strides),
                        std::span<const int64_t>(paddings));
}
inline Tensor avg_pool2d(const Tensor& x, IntList kernel, OptionalIntList stride = {}, IntList padding = 0) {
  const auto sizes = detail::pair("avg_pool2d: kernel", kernel),
             paddings = detail::pair("avg_pool2d: padding", padding);
  const backplane::OptionalInts given = stride;
  const auto strides = given.list ? detail::pair("avg_pool2d: stride", given.list->list) : sizes;
  return bp::avg_pool2d(x, std::span<const int64_t>(sizes), std::span<const int64_t>(strides),
                        std::span<const int64_t>(paddings));
}
// query, key, value: (..., length, features).
inline Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                           const Tensor& mask = {}, bool is_causal = false) {
  return bp::attention(query, key, value, mask, is_causal);
}

// ---- losses
// input: (n, classes, ...) or (classes); target: classes as integers, or probabilities of input's shape.
inline Tensor cross_entropy(const Tensor& input, const Tensor& target, Reduction reduction = kMean) {
  const int64_t axis = input.dim() == 1 ? 0 : 1;
  if (!target.is_floating_point()) return detail::reduced(bp::cross_entropy(input, target, axis), reduction);
  BP_CHECK(input.sizes() == target.sizes(), SHAPE, "cross_entropy: found probabilities of the shape ",
           bp::detail::shown_shape(target), ", expected the input's, ", bp::detail::shown_shape(input));
  return detail::reduced(-(bp::log_softmax(input, axis) * target).sum(axis), reduction);
}
inline Tensor nll_loss(const Tensor& input, const Tensor& target, Reduction reduction = kMean) {
  return detail::reduced(bp::nll_loss(input, target, input.dim() == 1 ? 0 : 1), reduction);
}
inline Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = kMean) {
  return detail::reduced(bp::mse_loss(input, target), reduction);
}
inline Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = kMean) {
  return detail::reduced(bp::l1_loss(input, target), reduction);
}
inline Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = kMean, double beta = 1) {
  return detail::reduced(bp::smooth_l1_loss(input, target, beta), reduction);
}
inline Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, Reduction reduction = kMean) {
  return detail::reduced(bp::binary_cross_entropy(input, target), reduction);
}
inline Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, Reduction reduction = kMean) {
  return detail::reduced(bp::binary_cross_entropy_with_logits(input, target), reduction);
}

}  // namespace functional

// Each fills the tensor in place, without history, and returns it.
namespace init {

inline Tensor uniform_(Tensor x, double low = 0, double high = 1) {
  const NoGrad guard;
  x.copy_(bp::uniform(x.sizes(), low, high, Dtype(x.dtype()), x.device()));
  return x;
}
inline Tensor normal_(Tensor x, double mean = 0, double std = 1) {
  const NoGrad guard;
  x.copy_(bp::normal(x.sizes(), mean, std, Dtype(x.dtype()), x.device()));
  return x;
}
inline Tensor constant_(Tensor x, double value) {
  const NoGrad guard;
  x.fill_(value);
  return x;
}
inline Tensor zeros_(Tensor x) { return constant_(std::move(x), 0); }
inline Tensor ones_(Tensor x) { return constant_(std::move(x), 1); }

// {inputs, outputs} of a unit of a weight (out, in, *kernel).
inline std::pair<double, double> fans(const Tensor& x) {
  BP_CHECK(x.dim() >= 2, SHAPE, "init: found a tensor of ", x.dim(), " axes, expected at least 2");
  const double field = static_cast<double>(x.numel()) / static_cast<double>(x.size(0) * x.size(1));
  return {static_cast<double>(x.size(1)) * field, static_cast<double>(x.size(0)) * field};
}
inline Tensor xavier_uniform_(Tensor x, double gain = 1) {
  const auto [in, out] = fans(x);
  const double limit = gain * std::sqrt(6 / (in + out));
  return uniform_(std::move(x), -limit, limit);
}
inline Tensor xavier_normal_(Tensor x, double gain = 1) {
  const auto [in, out] = fans(x);
  return normal_(std::move(x), 0, gain * std::sqrt(2 / (in + out)));
}
// For units with a leaky ReLU of slope a; 0: a ReLU.
inline Tensor kaiming_uniform_(Tensor x, double a = 0) {
  const double limit = std::sqrt(6 / ((1 + a * a) * fans(x).first));
  return uniform_(std::move(x), -limit, limit);
}
inline Tensor kaiming_normal_(Tensor x, double a = 0) {
  return normal_(x, 0, std::sqrt(2 / ((1 + a * a) * fans(x).first)));
}

}  // namespace init
}  // namespace bp::nn
