// Shape rules of windows that slide over axes: convolution, pooling, and the view of all windows along one axis.
//
// As shape_rules.cpp: shapes in, a shape out, no data and no heap.
#include "record/shape_words.hpp"

namespace backplane::core::shape_words {
namespace {

// The lists of settings that a word takes: an entry per spatial axis, or also a single entry for all.
enum class Lists : bool { kWhole, kOneForAll };

// A setting per spatial axis; an absent one, or an empty one where `none`, means `otherwise`.
class PerAxis {
 public:
  PerAxis(const ShapeArgs& in, Lists lists, uint32_t param, size_t n_spatial, int64_t otherwise, int64_t least,
          bool none = false)
      : otherwise_(otherwise) {
    if (!in.has(param)) return;
    values_ = in.ints(param);
    const bool one = lists == Lists::kOneForAll;
    BP_CHECK(values_.size() == n_spatial || (one && values_.size() == 1) || (none && values_.empty()), SHAPE,
             in.op.name, ": '", in.name(param), "' has ", values_.size(), values_.size() == 1 ? " entry" : " entries",
             "; expected ", none ? (one ? "none, " : "none or ") : "", one ? "1 or " : "", n_spatial,
             ", one per spatial axis");
    for (int64_t value : values_)
      BP_CHECK(value >= least, VALUE, in.op.name, ": '", in.name(param), "' holds ", value, "; expected ", least,
               " or more");
  }
  bool given() const { return !values_.empty(); }
  int64_t operator[](size_t axis) const {
    if (values_.empty()) return otherwise_;
    return values_[values_.size() == 1 ? 0 : axis];
  }

 private:
  std::span<const int64_t> values_;
  int64_t otherwise_;
};

__extension__ typedef __int128 Wide;  // a hostile dilation may be anything

// How many windows fit on an axis.
int64_t windows(const ShapeArgs& in, size_t axis, int64_t size, int64_t window, int64_t stride, int64_t padding,
                int64_t dilation) {
  const Wide padded = Wide{size} + 2 * Wide{padding};
  const Wide extent = window == 0 ? 0 : Wide{dilation} * (window - 1) + 1;
  BP_CHECK(window > 0 && extent <= padded && padded <= INT64_MAX, SHAPE, in.op.name, ": spatial axis ", axis,
           " of size ", size, ", padded by ", padding, " on both sides, has no room for a window of ", window,
           " with dilation ", dilation);
  return static_cast<int64_t>((padded - extent) / stride) + 1;
}

void check_images(const ShapeArgs& in, std::span<const int64_t> x) {
  BP_CHECK(x.size() == 4, SHAPE, in.op.name, ": '", in.name(0), "' has shape ", shape_text(x),
           "; expected images (n, c, h, w)");
}

void count_conv(const ShapeArgs& in, Lists lists, ShapeResult& out) {
  const auto x = in.sizes(0);
  const auto w = in.sizes(1);
  BP_CHECK(x.size() >= 3 && x.size() == w.size(), SHAPE, in.op.name, ": '", in.name(0), "' has shape ", shape_text(x),
           " and '", in.name(1), "' ", shape_text(w), "; expected (n, c, *spatial) and (o, c / groups, *kernel)");
  const size_t n_spatial = x.size() - 2;
  const PerAxis stride(in, lists, 2, n_spatial, 1, 1);
  const PerAxis padding(in, lists, 3, n_spatial, 0, 0);
  const PerAxis dilation(in, lists, 4, n_spatial, 1, 1);
  const int64_t groups = in.integer(5, 1);
  BP_CHECK(groups >= 1 && x[1] % groups == 0 && w[0] % groups == 0, SHAPE, in.op.name, ": ", groups,
           " groups do not divide ", x[1], " input and ", w[0], " output channels");
  BP_CHECK(w[1] == x[1] / groups, SHAPE, in.op.name, ": '", in.name(1), "' takes ", w[1], " channels per group, but '",
           in.name(0), "' has ", x[1], " in ", groups, " groups");
  in.add_dim(out, x[0]);
  in.add_dim(out, w[0]);
  for (size_t i = 0; i < n_spatial; ++i)
    in.add_dim(out, windows(in, i, x[i + 2], w[i + 2], stride[i], padding[i], dilation[i]));
  checked_count(out.sizes, out.ndim);
}

void count_pool(const ShapeArgs& in, Lists lists, ShapeResult& out) {
  const auto x = in.sizes(0);
  BP_CHECK(x.size() >= 3, SHAPE, in.op.name, ": '", in.name(0), "' has shape ", shape_text(x),
           "; expected (n, c, *spatial)");
  const size_t n_spatial = x.size() - 2;
  const PerAxis kernel(in, lists, 1, n_spatial, 0, 1);
  const PerAxis stride(in, lists, 2, n_spatial, 0, 1, true);
  const PerAxis padding(in, lists, 3, n_spatial, 0, 0);
  in.add_dim(out, x[0]);
  in.add_dim(out, x[1]);
  for (size_t i = 0; i < n_spatial; ++i) {
    BP_CHECK(padding[i] <= kernel[i] / 2, VALUE, in.op.name, ": a padding of ", padding[i],
             " exceeds half the window of ", kernel[i]);
    in.add_dim(out, windows(in, i, x[i + 2], kernel[i], stride.given() ? stride[i] : kernel[i], padding[i], 1));
  }
  checked_count(out.sizes, out.ndim);
}

}  // namespace

void conv(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  count_conv({op, rule, args}, Lists::kOneForAll, out);
}

void conv2d(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  check_images(in, in.sizes(0));
  count_conv(in, Lists::kWhole, out);
}

void pool(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  count_pool({op, rule, args}, Lists::kOneForAll, out);
}

void pool2d(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  check_images(in, in.sizes(0));
  count_pool(in, Lists::kWhole, out);
}

void unfold(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const DLTensor& x = in.tensor(0).dl;
  const int32_t axis = normalize_axis(op, in.value(1).u.i, x.ndim);
  const int64_t size = in.value(2).u.i;
  const int64_t step = in.value(3).u.i;
  const int64_t dilation = in.integer(4, 1);
  BP_CHECK(step >= 1, VALUE, op.name, ": the step between windows is ", step, "; expected 1 or more");
  BP_CHECK(dilation >= 1, VALUE, op.name, ": the dilation of a window is ", dilation, "; expected 1 or more");
  int64_t reach = 0;  // from a window's first element to its last
  const bool fits = size >= 0 && !__builtin_mul_overflow(std::max<int64_t>(size - 1, 0), dilation, &reach) &&
                    (size == 0 || reach < x.shape[axis]);
  BP_CHECK(fits, VALUE, op.name, ": a window of ", size, ", dilated by ", dilation, ", does not fit on axis ", axis,
           " of size ", x.shape[axis]);
  for (int32_t d = 0; d < x.ndim; ++d) {
    in.add_dim(out, x.shape[d]);
    out.strides[d] = x.strides[d];
  }
  out.sizes[axis] = (x.shape[axis] - reach - (size > 0)) / step + 1;
  // Strides are not read where there is one window or element, and then the product may not fit.
  out.strides[axis] = out.sizes[axis] > 1 ? x.strides[axis] * step : x.strides[axis];
  in.add_dim(out, size);
  out.strides[x.ndim] = size > 1 ? x.strides[axis] * dilation : x.strides[axis];
  out.is_view = true;
  checked_count(out.sizes, out.ndim);
}

}  // namespace backplane::core::shape_words
