// conv2d and its two adjoints. Forward in float32, kernels of one pixel (pointwise_conv2d.cpp) and one channel per
// group (depthwise_conv2d.cpp) read images as they lie. Else in float32 through oneDNN (dnn_conv2d.cpp), where the
// build has it and it gains; else as products with matrices of windows, image by image, parallel over images and
// groups, and over large images, in float32 and forward, directly (direct_conv2d.cpp).
//
// Tensors are contiguous.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/linalg/gemm.hpp"
#include "kernels/nn/bands.hpp"
#include "kernels/nn/columns.hpp"
#include "kernels/nn/conv2d.hpp"
#include "kernels/nn/depthwise_conv2d.hpp"
#include "kernels/nn/direct_conv2d.hpp"
#include "kernels/nn/dnn_conv2d.hpp"
#include "kernels/nn/pointwise_conv2d.hpp"
#include "loops/cast_row.hpp"
#include "loops/conv_step.hpp"
#include "loops/elementwise.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

// Multiply-adds of a piece: about 20 microseconds.
constexpr int64_t kPieceWork = int64_t{1} << 20;
// Outputs of an image from which the direct way is faster: it saves writing and packing the matrix of windows, which
// OpenBLAS's better kernels make up for on small images with many channels.
constexpr int64_t kDirectOutputs = 2048;
// Multiply-adds of an image from which the direct way goes first: a call of oneDNN cannot be interrupted, and where
// channels are few it takes longer. 2^20 elements by 4001 taps on one thread of a Xeon (AVX-512): 0.38 and 2.05 s; 64
// channels to 2, 2^16 by 501: 0.20 and 1.09 s; 2 to 64: 0.13 and 0.12 s.
constexpr int64_t kLongWork = int64_t{1} << 30, kVeryLongWork = int64_t{1} << 37, kFewChannels = 8;
// Outputs of an image from which a pointwise convolution is a product with the image itself, for one image always: it
// saves two changes of layout. On one thread of a Xeon (AVX-512): 24 channels to 96 of 80 by 80: 214 and 661
// microseconds; 384 to 384 of 5 by 5: 67 and 110, for 8 images 598 and 486.
constexpr int64_t kPointwiseOutputs = 256;
// Elements of a kernel up to which a channel per group is computed where it lies: 5 by 5 elements for 480 channels of
// 14 by 14 take 93 microseconds on one thread of a Xeon (AVX-512), and 72 by oneDNN; 3 by 3 for 32 of 112 by 112, 134
// and 338.
constexpr int64_t kFewTaps = 9;
// Gradients of kernels are summed over images in this many parts, whatever the threads, so that they do not depend on
// them.
constexpr int64_t kWeightParts = 8;

// Images of one column become images of one row, which lie in memory in the same way: kernels work along rows.
void turn_columns(Windows* w) {
  if (w->width != 1 || w->out_width != 1 || w->kernel[1] != 1 || w->padding[1] != 0) return;
  std::swap(w->height, w->width);
  std::swap(w->out_height, w->out_width);
  for (int64_t* pair : {w->kernel, w->stride, w->padding, w->dilation}) std::swap(pair[0], pair[1]);
}

template <class T>
Matrix matrix(const T* data, int64_t rows, int64_t cols) {
  return {reinterpret_cast<char*>(const_cast<T*>(data)), rows, cols, cols, 1};
}
// The columns of a matrix of results that are a band's outputs.
template <class T>
Matrix band_of(const T* results, int64_t filters, const Windows& whole, const Band& band) {
  Matrix m = matrix(results + band.first, filters, band.windows.outputs());
  m.row_stride = whole.outputs();
  return m;
}
// Bytes of the column of one output in the matrix of windows. A pointwise convolution makes no such matrix.
template <class T>
int64_t column_bytes(const Convolution& c) {
  return c.pointwise() ? 1 : c.taps() * int64_t{sizeof(T)};
}
// Elements of the matrix of windows of the largest band.
template <class T>
int64_t band_size(const Convolution& c) {
  return c.pointwise() ? 0 : c.taps() * outputs_of_band(c.windows, column_bytes<T>(c));
}
// The windows of a band: the image itself, or made in `columns`.
template <class T>
Matrix windows_of(const Convolution& c, const Band& band, const T* image, T* columns) {
  if (c.pointwise()) return band_of(image, c.taps(), c.windows, band);
  image_to_columns(band.windows, c.channels, image, columns);
  return matrix(columns, c.taps(), band.windows.outputs());
}
Matrix transposed(const Matrix& m) { return {m.data, m.cols, m.rows, m.col_stride, m.row_stride}; }

template <class T>
void forward(const bp_frame* frame, const Convolution& c, const T* x, const T* w, T* y) {
  std::vector<Band> bands;
  for_each_band(c.windows, column_bytes<T>(c), [&](const Band& band) { bands.push_back(band); });
  const auto count = static_cast<int64_t>(bands.size()), pieces = c.images * c.groups * count;
  const auto range = [&](int64_t begin, int64_t end) {
    const Scratch<T> columns(band_size<T>(c));
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t i = piece / count;
      const Band& band = bands[static_cast<size_t>(piece % count)];
      gemm(plugin::kDtypeOf<T>, matrix(w + i % c.groups * c.kernel_size(), c.filters, c.taps()),
           windows_of(c, band, x + i * c.image_size(), columns.get()),
           band_of(y + i * c.result_size(), c.filters, c.windows, band));
    }
  };
  const int64_t grain = std::max<int64_t>(kPieceWork / std::max<int64_t>(c.work() / count, 1), 1);
  if (pieces <= grain) return range(0, pieces);
  plugin::parallel_for(frame, 0, pieces, grain, range);
}

// Fewer images than threads are cut along their channels, because each channel has its own windows.
template <class T>
void input_grad(const bp_frame* frame, const Convolution& c, const T* y, const T* w, T* x) {
  const int64_t taps = c.windows.taps(), images = c.images * c.groups;
  const int64_t wanted = (frame->host->worker_count() + images - 1) / images;
  const int64_t parts = std::clamp<int64_t>(std::min(c.work() / kPieceWork, c.channels), 1, wanted);
  const auto range = [&](int64_t begin, int64_t end) {
    const Scratch<T> columns(band_size<T>(c));
    for (int64_t at = begin; at < end; ++at) {
      const int64_t i = at / parts, first = c.channels * (at % parts) / parts,
                    channels = c.channels * (at % parts + 1) / parts - first;
      Matrix kernels = matrix(w + i % c.groups * c.kernel_size() + first * taps, c.filters, channels * taps);
      kernels.row_stride = c.taps();
      const T* results = y + i * c.result_size();
      T* image = x + i * c.image_size() + first * c.windows.image();
      if (!c.pointwise()) std::fill_n(image, channels * c.windows.image(), T(0));
      for_each_band(c.windows, column_bytes<T>(c), [&](const Band& band) {
        const Matrix target = c.pointwise() ? band_of(image, channels, c.windows, band)
                                            : matrix(columns.get(), channels * taps, band.windows.outputs());
        gemm(plugin::kDtypeOf<T>, transposed(kernels), band_of(results, c.filters, c.windows, band), target);
        if (!c.pointwise()) columns_to_image(band.windows, channels, columns.get(), image);
      });
    }
  };
  const int64_t grain = std::max<int64_t>(kPieceWork / std::max<int64_t>(c.work() / parts, 1), 1);
  if (images * parts <= grain) return range(0, images * parts);
  plugin::parallel_for(frame, 0, images * parts, grain, range);
}

template <class T>
void weight_grad(const bp_frame* frame, const Convolution& c, const T* y, const T* x, T* w) {
  const int64_t total = c.groups * c.kernel_size();
  const int64_t parts =
      std::clamp<int64_t>(c.images * c.groups * c.work() / kPieceWork, 1, std::min(kWeightParts, c.images));
  const Scratch<T> sums(parts * total);
  const auto part = [&](int64_t begin, int64_t end) {
    const Scratch<T> columns(band_size<T>(c));
    for (int64_t p = begin; p < end; ++p) {
      T* sum = sums.get() + p * total;
      std::fill_n(sum, total, T(0));
      const int64_t last = c.images * (p + 1) / parts * c.groups;
      for (int64_t i = c.images * p / parts * c.groups; i < last; ++i) {
        const T *image = x + i * c.image_size(), *results = y + i * c.result_size();
        const Matrix target = matrix(sum + i % c.groups * c.kernel_size(), c.filters, c.taps());
        for_each_band(c.windows, column_bytes<T>(c), [&](const Band& band) {
          gemm(plugin::kDtypeOf<T>, band_of(results, c.filters, c.windows, band),
               transposed(windows_of(c, band, image, columns.get())), target, true);
        });
      }
    }
  };
  if (parts == 1)
    part(0, 1);
  else
    plugin::parallel_for(frame, 0, parts, 1, part);
  std::copy_n(sums.get(), total, w);
  for (int64_t p = 1; p < parts; ++p)
    for (int64_t i = 0; i < total; ++i) w[i] += sums.get()[p * total + i];
}

// conv2d's shape rule has seen to this; an adjoint is given a shape that need not fit.
void check_geometry(const bp_frame* frame, const bp_tensor* x, const bp_tensor* w, const bp_tensor* y,
                    const bp_value* options) {
  BP_CHECK(x->dl.ndim == 4 && w->dl.ndim == 4 && y->dl.ndim == 4, SHAPE, frame->op->name, ": found ", x->dl.ndim, ", ",
           w->dl.ndim, " and ", y->dl.ndim, " axes of images, kernels and results, expected 4 of each");
  const int64_t *xs = x->dl.shape, *ws = w->dl.shape, *ys = y->dl.shape, groups = plugin::as_int(options[3]);
  BP_CHECK(groups > 0 && ws[0] % groups == 0 && xs[1] == ws[1] * groups && ys[1] == ws[0] && ys[0] == xs[0], SHAPE,
           frame->op->name, ": images of ", xs[0], " x ", xs[1], " channels, kernels ", ws[0], " x ", ws[1],
           " and results of ", ys[0], " x ", ys[1], " channels do not fit in ", groups, " groups");
  int64_t stride[2], padding[2], dilation[2];
  read_pair(options[0], stride);
  read_pair(options[1], padding);
  read_pair(options[2], dilation);
  for (int d = 0; d < 2; ++d) {
    BP_CHECK(stride[d] > 0 && padding[d] >= 0 && dilation[d] > 0, VALUE, frame->op->name, ": found a stride of ",
             stride[d], ", a padding of ", padding[d], " and a dilation of ", dilation[d],
             ", expected at least 1, 0 and 1");
    const double reach = static_cast<double>(dilation[d]) * static_cast<double>(ws[d + 2] - 1);
    const double room = static_cast<double>(xs[d + 2]) + 2.0 * static_cast<double>(padding[d]) - reach - 1;
    BP_CHECK(ws[d + 2] > 0 && room >= 0 && room < 0x1p52 && ys[d + 2] == static_cast<int64_t>(room) / stride[d] + 1,
             SHAPE, frame->op->name, ": images of size ", xs[d + 2], " and kernels of ", ws[d + 2],
             " do not give results of size ", ys[d + 2], " along spatial axis ", d);
  }
}

// False, and nothing done, where windows as matrices are to serve.
bool compute_float(const bp_frame* frame, Pass pass, const Convolution& c, const float* left, const float* right,
                   float* result, const ConvTail& tail) {
  const bool forward = pass == Pass::kForward;
  if (forward && c.windows.taps() <= kFewTaps && depthwise_conv2d(frame, c, left, right, result, tail)) return true;
  const bool is_product =
      forward && c.pointwise() && c.groups == 1 && (c.images == 1 || c.windows.outputs() >= kPointwiseOutputs);
  if (is_product && pointwise_conv2d(frame, c, left, right, result, tail)) return true;
  const auto with_tail = [&] {
    if (forward) apply_tail(frame, tail, c.images, c.groups * c.filters, c.windows.outputs(), result);
    return true;
  };
  const bool direct = forward && !c.pointwise() && c.windows.outputs() >= kDirectOutputs;
  const bool few_channels = std::min(c.channels, c.filters) <= kFewChannels;
  const bool is_long = direct && c.work() > (few_channels ? kLongWork : kVeryLongWork);
  if (!is_long && !is_product && dnn_conv2d(frame, pass, c, left, right, result)) return with_tail();
  if (forward && depthwise_conv2d(frame, c, left, right, result, tail)) return true;
  if (!direct) return false;
  direct_forward(frame, c, left, right, result);
  return with_tail();
}

template <Pass P, class T>
void compute(const bp_frame* frame, const Convolution& c, const T* left, const T* right, T* result) {
  if constexpr (std::is_same_v<T, float>)
    if (compute_float(frame, P, c, left, right, result, {})) return;
  if constexpr (P == Pass::kForward) forward(frame, c, left, right, result);
  if constexpr (P == Pass::kInput) input_grad(frame, c, left, right, result);
  if constexpr (P == Pass::kWeight) weight_grad(frame, c, left, right, result);
}

void convert(const bp_frame* frame, bp_dtype from, const void* source, bp_dtype to, void* target, int64_t n) {
  const int64_t item = plugin::kItemSize[from], result = plugin::kItemSize[to];
  plugin::parallel_for(frame, 0, n, kCheapGrain, [&](int64_t begin, int64_t end) {
    cast_row(from, static_cast<const char*>(source) + begin * item, item, to,
             static_cast<char*>(target) + begin * result, result, end - begin);
  });
}

// Half floats are computed in float32, and rounded once.
template <Pass P>
void compute_halves(const bp_frame* frame, const Convolution& c, const bp_tensor* a, const bp_tensor* b,
                    const bp_tensor* out) {
  const auto count = [](const bp_tensor* t) { return static_cast<int64_t>(t->nbytes) / plugin::kItemSize[t->dtype]; };
  const Scratch<float> left(count(a)), right(count(b)), result(count(out));
  convert(frame, a->dtype, data_of(a), BP_FLOAT32, left.get(), count(a));
  convert(frame, b->dtype, data_of(b), BP_FLOAT32, right.get(), count(b));
  compute<P>(frame, c, left.get(), right.get(), result.get());
  convert(frame, BP_FLOAT32, result.get(), out->dtype, data_of(out), count(out));
}

// conv2d(x, w, *, stride, padding, dilation, groups), conv2d_input_grad(y, w, shape, *, ...) and
// conv2d_weight_grad(y, x, shape, *, ...).
template <Pass P>
bp_status BP_CALL conv2d(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *a = plugin::as_tensor(args[0]), *b = plugin::as_tensor(args[1]), *out = outs[0].u.t;
    const bp_tensor* x = P == Pass::kForward ? a : P == Pass::kInput ? out : b;
    const bp_tensor* w = P == Pass::kWeight ? out : b;
    const bp_tensor* y = P == Pass::kForward ? out : a;
    const bp_value* options = args + (P == Pass::kForward ? 2 : 3);
    if constexpr (P != Pass::kForward) check_geometry(frame, x, w, y, options);
    if (out->nbytes == 0) return;
    const Convolution c = convolution_of(x->dl.shape, w->dl.shape, y->dl.shape, options);
    if (c.images * c.work() * c.groups == 0 || a->nbytes == 0 || b->nbytes == 0) {
      std::memset(data_of(out), 0, out->nbytes);  // an empty sum
      return;
    }
    plugin::dispatch_dtype<BP_MASK_FLOATING>(out->dtype, [&]<class T>() {
      if constexpr (plugin::kIsHalf<T>)
        compute_halves<P>(frame, c, a, b, out);
      else
        compute<P>(frame, c, reinterpret_cast<const T*>(data_of(a)), reinterpret_cast<const T*>(data_of(b)),
                   reinterpret_cast<T*>(data_of(out)));
    });
  });
}

}  // namespace

Convolution convolution_of(const int64_t* x, const int64_t* w, const int64_t* y, const bp_value* options) {
  Convolution c;
  c.images = x[0];
  c.groups = plugin::as_int(options[3]);
  c.channels = w[1];
  c.filters = w[0] / std::max<int64_t>(c.groups, 1);
  c.windows.height = x[2];
  c.windows.width = x[3];
  c.windows.out_height = y[2];
  c.windows.out_width = y[3];
  c.windows.kernel[0] = w[2];
  c.windows.kernel[1] = w[3];
  read_pair(options[0], c.windows.stride);
  read_pair(options[1], c.windows.padding);
  read_pair(options[2], c.windows.dilation);
  turn_columns(&c.windows);
  return c;
}

void conv2d_with_tail(const bp_frame* frame, const Convolution& c, const float* x, const float* w, float* y,
                      const ConvTail& tail) {
  if (compute_float(frame, Pass::kForward, c, x, w, y, tail)) return;
  forward(frame, c, x, w, y);
  apply_tail(frame, tail, c.images, c.groups * c.filters, c.windows.outputs(), y);
}

const ConvStepOp kConvolution("bp::conv2d", ConvRole::kConvolution);

const Family kConv2d([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::conv2d", "cpu", conv2d<Pass::kForward>, .dtypes = BP_MASK_FLOATING));
  registrar.kernel(BP_KERNEL("bp::conv2d_input_grad", "cpu", conv2d<Pass::kInput>, .dtypes = BP_MASK_FLOATING));
  registrar.kernel(BP_KERNEL("bp::conv2d_weight_grad", "cpu", conv2d<Pass::kWeight>, .dtypes = BP_MASK_FLOATING));
});

}  // namespace backplane::cpu
