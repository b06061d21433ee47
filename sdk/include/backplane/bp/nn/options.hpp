// Options of layers, with chained setters as in libtorch: Conv2dOptions(1, 8, 3).stride(2).bias(false).
#pragma once

#include <array>

#include "backplane/bp/types.hpp"

namespace bp::nn {

// A size for both axes of an image, or one for each.
class Size2 {
 public:
  Size2(int64_t both) : sizes_{both, both} {}
  Size2(int64_t height, int64_t width) : sizes_{height, width} {}
  operator IntList() const { return std::span<const int64_t>(sizes_); }
  int64_t operator[](size_t i) const { return sizes_[i]; }
  std::string text() const { return "{" + std::to_string(sizes_[0]) + ", " + std::to_string(sizes_[1]) + "}"; }

 private:
  std::array<int64_t, 2> sizes_;
};

#define BP_NN_OPTION(Class, type, name, value) \
 public:                                       \
  Class& name(type wanted) {                   \
    name##_ = std::move(wanted);               \
    return *this;                              \
  }                                            \
  const type& name() const { return name##_; } \
                                               \
 private:                                      \
  type name##_ = value

class LinearOptions {
 public:
  LinearOptions(int64_t in, int64_t out) : in_features_(in), out_features_(out) {}
  BP_NN_OPTION(LinearOptions, int64_t, in_features, 0);
  BP_NN_OPTION(LinearOptions, int64_t, out_features, 0);
  BP_NN_OPTION(LinearOptions, bool, bias, true);
};

class Conv2dOptions {
 public:
  Conv2dOptions(int64_t in, int64_t out, Size2 kernel) : in_channels_(in), out_channels_(out), kernel_size_(kernel) {}
  BP_NN_OPTION(Conv2dOptions, int64_t, in_channels, 0);
  BP_NN_OPTION(Conv2dOptions, int64_t, out_channels, 0);
  BP_NN_OPTION(Conv2dOptions, Size2, kernel_size, 1);
  BP_NN_OPTION(Conv2dOptions, Size2, stride, 1);
  BP_NN_OPTION(Conv2dOptions, Size2, padding, 0);
  BP_NN_OPTION(Conv2dOptions, Size2, dilation, 1);
  BP_NN_OPTION(Conv2dOptions, int64_t, groups, 1);
  BP_NN_OPTION(Conv2dOptions, bool, bias, true);
};

class LayerNormOptions {
 public:
  LayerNormOptions(std::vector<int64_t> shape) : normalized_shape_(std::move(shape)) {}
  BP_NN_OPTION(LayerNormOptions, std::vector<int64_t>, normalized_shape, {});
  BP_NN_OPTION(LayerNormOptions, double, eps, 1e-5);
  BP_NN_OPTION(LayerNormOptions, bool, elementwise_affine, true);
};

class BatchNormOptions {
 public:
  BatchNormOptions(int64_t features) : num_features_(features) {}
  BP_NN_OPTION(BatchNormOptions, int64_t, num_features, 0);
  BP_NN_OPTION(BatchNormOptions, double, eps, 1e-5);
  BP_NN_OPTION(BatchNormOptions, double, momentum, 0.1);
  BP_NN_OPTION(BatchNormOptions, bool, affine, true);
};

class MultiheadAttentionOptions {
 public:
  MultiheadAttentionOptions(int64_t features, int64_t heads) : embed_dim_(features), num_heads_(heads) {}
  BP_NN_OPTION(MultiheadAttentionOptions, int64_t, embed_dim, 0);
  BP_NN_OPTION(MultiheadAttentionOptions, int64_t, num_heads, 1);
  BP_NN_OPTION(MultiheadAttentionOptions, bool, bias, true);
};

#undef BP_NN_OPTION

}  // namespace bp::nn
