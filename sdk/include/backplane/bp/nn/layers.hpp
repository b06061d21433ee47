// Layers with parameters: PyTorch's names, arguments, initialisation and state-dict names.
#pragma once

#include "backplane/bp/nn/functional.hpp"
#include "backplane/bp/nn/module.hpp"
#include "backplane/bp/nn/options.hpp"

namespace bp::nn {

namespace detail {
inline std::string text_of(bool value) { return value ? "true" : "false"; }
inline double reciprocal_root(double n) { return n > 0 ? 1 / std::sqrt(n) : 0; }
}  // namespace detail

// x @ weight.T + bias, of x: (*, in_features).
class LinearImpl : public Module {
 public:
  explicit LinearImpl(const LinearOptions& wanted) : Module("Linear"), options(wanted) {
    const double limit = detail::reciprocal_root(static_cast<double>(options.in_features()));
    weight = init::uniform_(empty({options.out_features(), options.in_features()}), -limit, limit);
    register_parameter("weight", weight);
    if (!options.bias()) return;
    bias = init::uniform_(empty(options.out_features()), -limit, limit);
    register_parameter("bias", bias);
  }
  LinearImpl(int64_t in_features, int64_t out_features, bool with_bias = true)
      : LinearImpl(LinearOptions(in_features, out_features).bias(with_bias)) {}
  Tensor forward(const Tensor& x) const { return bp::linear(x, weight, bias); }
  std::string extra_text() const override {
    return std::to_string(options.in_features()) + ", " + std::to_string(options.out_features()) +
           ", bias=" + detail::text_of(options.bias());
  }

  LinearOptions options;
  Tensor weight, bias;
};
BP_MODULE(Linear);

// x: (n, in_channels, height, width), or without n.
class Conv2dImpl : public Module {
 public:
  explicit Conv2dImpl(const Conv2dOptions& wanted) : Module("Conv2d"), options(wanted) {
    BP_CHECK(options.groups() > 0 && options.in_channels() % options.groups() == 0, VALUE, "Conv2d: found ",
             options.in_channels(), " input channels and ", options.groups(), " groups, which do not divide them");
    const Size2& kernel = options.kernel_size();
    weight = empty({options.out_channels(), options.in_channels() / options.groups(), kernel[0], kernel[1]});
    const double limit = detail::reciprocal_root(init::fans(weight).first);
    init::uniform_(weight, -limit, limit);
    register_parameter("weight", weight);
    if (!options.bias()) return;
    bias = init::uniform_(empty(options.out_channels()), -limit, limit);
    register_parameter("bias", bias);
  }
  Conv2dImpl(int64_t in_channels, int64_t out_channels, Size2 kernel_size)
      : Conv2dImpl(Conv2dOptions(in_channels, out_channels, kernel_size)) {}
  Tensor forward(const Tensor& x) const {
    return functional::conv2d(x, weight, bias, options.stride(), options.padding(), options.dilation(),
                              options.groups());
  }
  std::string extra_text() const override {
    return std::to_string(options.in_channels()) + ", " + std::to_string(options.out_channels()) +
           ", kernel_size=" + options.kernel_size().text() + ", stride=" + options.stride().text();
  }

  Conv2dOptions options;
  Tensor weight, bias;
};
BP_MODULE(Conv2d);

// Rows of a table by integers of any shape.
class EmbeddingImpl : public Module {
 public:
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : Module("Embedding"), weight(init::normal_(empty({num_embeddings, embedding_dim}))) {
    register_parameter("weight", weight);
  }
  Tensor forward(const Tensor& indices) const { return bp::embedding(weight, indices); }
  std::string extra_text() const override {
    return std::to_string(weight.size(0)) + ", " + std::to_string(weight.size(1));
  }

  Tensor weight;
};
BP_MODULE(Embedding);

// Normalises over the last axes, of the sizes normalized_shape.
class LayerNormImpl : public Module {
 public:
  explicit LayerNormImpl(const LayerNormOptions& wanted) : Module("LayerNorm"), options(wanted) {
    if (!options.elementwise_affine()) return;
    weight = ones(options.normalized_shape());
    bias = zeros(options.normalized_shape());
    register_parameter("weight", weight);
    register_parameter("bias", bias);
  }
  explicit LayerNormImpl(std::vector<int64_t> shape) : LayerNormImpl(LayerNormOptions(std::move(shape))) {}
  explicit LayerNormImpl(int64_t size) : LayerNormImpl(LayerNormOptions(std::vector<int64_t>{size})) {}
  Tensor forward(const Tensor& x) const {
    return functional::layer_norm(x, options.normalized_shape(), weight, bias, options.eps());
  }

  LayerNormOptions options;
  Tensor weight, bias;
};
BP_MODULE(LayerNorm);

// x / sqrt(mean(x²) + eps) * weight, over the last axis.
class RMSNormImpl : public Module {
 public:
  explicit RMSNormImpl(int64_t size, double eps_ = 1e-6) : Module("RMSNorm"), eps(eps_), weight(ones(size)) {
    register_parameter("weight", weight);
  }
  Tensor forward(const Tensor& x) const { return bp::rms_norm(x, weight, -1, eps); }

  double eps;
  Tensor weight;
};
BP_MODULE(RMSNorm);

// Normalises each channel over the batch while it trains, and by the running statistics otherwise. x: (n, channels, *).
class BatchNormImpl : public Module {
 public:
  explicit BatchNormImpl(const BatchNormOptions& wanted, std::string kind = "BatchNorm")
      : Module(std::move(kind)), options(wanted) {
    const int64_t features = options.num_features();
    if (options.affine()) {
      weight = ones(features);
      bias = zeros(features);
      register_parameter("weight", weight);
      register_parameter("bias", bias);
    }
    running_mean = zeros(features);
    running_var = ones(features);
    num_batches_tracked = zeros({}, kInt64);
    register_buffer("running_mean", running_mean);
    register_buffer("running_var", running_var);
    register_buffer("num_batches_tracked", num_batches_tracked);
  }
  Tensor forward(const Tensor& x) const {
    BP_CHECK(x.dim() >= 2 && x.size(1) == options.num_features(), SHAPE, name(), ": found x of the shape ",
             bp::detail::shown_shape(x), ", expected ", options.num_features(), " channels along axis 1");
    if (!is_training()) return bp::batch_norm_inference(x, running_mean, running_var, weight, bias, options.eps());
    std::vector<int64_t> axes = {0};
    for (int64_t axis = 2; axis < x.dim(); ++axis) axes.push_back(axis);
    const int64_t count = x.numel() / x.size(1);
    BP_CHECK(count > 1, VALUE, name(), ": found one value per channel, expected more while training");
    {
      const NoGrad guard;
      const Tensor seen = x.detach();
      running_mean.lerp_(seen.mean(axes), options.momentum());
      running_var.lerp_(seen.var(axes, 1), options.momentum());
      num_batches_tracked.add_(1);
    }
    return bp::batch_norm(x, weight, bias, options.eps()).y;
  }

  BatchNormOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};
class BatchNorm1dImpl : public BatchNormImpl {
 public:
  explicit BatchNorm1dImpl(const BatchNormOptions& wanted) : BatchNormImpl(wanted, "BatchNorm1d") {}
};
class BatchNorm2dImpl : public BatchNormImpl {
 public:
  explicit BatchNorm2dImpl(const BatchNormOptions& wanted) : BatchNormImpl(wanted, "BatchNorm2d") {}
};
BP_MODULE(BatchNorm1d);
BP_MODULE(BatchNorm2d);

// x: (batch, length, embed_dim), unlike libtorch's (length, batch, embed_dim); PyTorch's batch_first=True.
class MultiheadAttentionImpl : public Module {
 public:
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& wanted)
      : Module("MultiheadAttention"), options(wanted) {
    const int64_t features = options.embed_dim(), heads = options.num_heads();
    BP_CHECK(heads > 0 && features % heads == 0, VALUE, "MultiheadAttention: found ", features, " features and ", heads,
             " heads, which do not divide them");
    in_proj_weight = init::xavier_uniform_(empty({3 * features, features}));
    register_parameter("in_proj_weight", in_proj_weight);
    if (options.bias()) {
      in_proj_bias = zeros(3 * features);
      register_parameter("in_proj_bias", in_proj_bias);
    }
    out_proj = register_module("out_proj", Linear(LinearOptions(features, features).bias(options.bias())));
    if (options.bias()) init::zeros_(out_proj->bias);
  }
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}

  // mask: of the shape (length, keys of length), bools that are true where attention is allowed, or floats to add.
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask = {},
                 bool is_causal = false) const {
    const std::vector<Tensor> weights = in_proj_weight.chunk(3);
    const std::vector<Tensor> biases = in_proj_bias.defined() ? in_proj_bias.chunk(3) : std::vector<Tensor>(3);
    const Tensor mixed =
        bp::attention(heads(bp::linear(query, weights[0], biases[0])), heads(bp::linear(key, weights[1], biases[1])),
                      heads(bp::linear(value, weights[2], biases[2])), mask, is_causal);
    return out_proj(mixed.transpose(1, 2).reshape({query.size(0), query.size(1), options.embed_dim()}));
  }
  Tensor forward(const Tensor& x, const Tensor& mask = {}, bool is_causal = false) const {
    return forward(x, x, x, mask, is_causal);
  }

  MultiheadAttentionOptions options;
  Tensor in_proj_weight, in_proj_bias;
  Linear out_proj{nullptr};

 private:
  Tensor heads(const Tensor& x) const {
    BP_CHECK(x.dim() == 3, SHAPE, "MultiheadAttention: found an input of ", x.dim(),
             " axes, expected (batch, length, features)");
    const int64_t count = options.num_heads();
    return x.reshape({x.size(0), x.size(1), count, options.embed_dim() / count}).transpose(1, 2);
  }
};
BP_MODULE(MultiheadAttention);

}  // namespace bp::nn
