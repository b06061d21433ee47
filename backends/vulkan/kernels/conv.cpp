// conv2d and its adjoints in the images and in the kernels: products of matrices that are never written out
// (shaders/conv2d.comp). Tensors are contiguous.
#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

enum Pass : uint8_t { kForward, kOfImages, kOfKernels };  // as in the shader

using Pair = std::array<int64_t, 2>;

// x (images, groups * channels, image), w (groups * filters, channels, kernel), y (images, groups * filters, result).
struct Geometry {
  int64_t images, groups, channels, filters;
  Pair image, result, kernel, stride, padding, dilation;
};

Pair pair(const Call& call, size_t arg) {
  const Sizes list = call.integers(arg);
  BP_CHECK(list.size() == 2, VALUE, call.op_name(), ": found a list of ", list.size(),
           " sizes, expected 2: for height and width");
  return {list[0], list[1]};
}
int64_t area(const Pair& sizes) { return sizes[0] * sizes[1]; }

// conv2d's shape rule has seen to this; an adjoint is given a shape that need not fit.
void check_fit(const Call& call, const Operand& x, const Operand& w, const Operand& y, const Geometry& g) {
  BP_CHECK(g.groups > 0 && w.shape[0] % g.groups == 0 && x.shape[1] == w.shape[1] * g.groups &&
               y.shape[0] == x.shape[0] && y.shape[1] == w.shape[0],
           SHAPE, call.op_name(), ": found ", x.shape[0], " images of ", x.shape[1], " channels, ", w.shape[0],
           " kernels of ", w.shape[1], " and ", y.shape[0], " results of ", y.shape[1],
           " channels; expected sizes of one convolution in ", g.groups, " groups");
  for (size_t d = 0; d < 2; ++d) {
    BP_CHECK(g.stride[d] > 0 && g.padding[d] >= 0 && g.dilation[d] > 0, VALUE, call.op_name(), ": found stride ",
             g.stride[d], ", padding ", g.padding[d], " and dilation ", g.dilation[d],
             ", expected at least 1, 0 and 1");
    // In double, where sums of sizes do not wrap.
    const double reach = static_cast<double>(g.dilation[d]) * static_cast<double>(g.kernel[d] - 1);
    const double room = static_cast<double>(g.image[d]) + 2.0 * static_cast<double>(g.padding[d]) - reach - 1;
    BP_CHECK(
        g.kernel[d] > 0 && room >= 0 && room < 0x1p52 && g.result[d] == static_cast<int64_t>(room) / g.stride[d] + 1,
        SHAPE, call.op_name(), ": found images of ", g.image[d], ", kernels of ", g.kernel[d], " and results of ",
        g.result[d], " along spatial axis ", d, ", which are not sizes of one convolution");
  }
}

Geometry geometry_of(const Call& call, const Operand& x, const Operand& w, const Operand& y, size_t options) {
  BP_CHECK(x.ndim() == 4 && w.ndim() == 4 && y.ndim() == 4, SHAPE, call.op_name(), ": found ", x.ndim(), ", ", w.ndim(),
           " and ", y.ndim(), " axes of images, kernels and results, expected 4 of each");
  Geometry g{.images = x.shape[0],
             .groups = call.integer(options + 3),
             .channels = w.shape[1],
             .filters = 0,
             .image = {x.shape[2], x.shape[3]},
             .result = {y.shape[2], y.shape[3]},
             .kernel = {w.shape[2], w.shape[3]},
             .stride = pair(call, options),
             .padding = pair(call, options + 1),
             .dilation = pair(call, options + 2)};
  check_fit(call, x, w, y, g);
  g.filters = w.shape[0] / g.groups;
  for (size_t d = 0; d < 2; ++d) {
    narrow(g.image[d] + 2 * g.padding[d], call.op_name());
    narrow(g.stride[d], call.op_name());
    narrow(g.dilation[d] * (g.kernel[d] - 1), call.op_name());
  }
  return g;
}

struct Product {
  int64_t rows, inner, columns;
};

Product product_of(Pass pass, const Geometry& g) {
  const int64_t taps = g.channels * area(g.kernel), places = g.images * area(g.result);
  if (pass == kForward) return {g.filters, taps, places};
  if (pass == kOfImages) return {g.channels, g.filters * area(g.kernel), g.images * area(g.image)};
  return {g.filters, places, taps};
}

// The kernels as shaders/conv2d_blocks.comp reads them for the pass of images: groups, channels, filters, kernel, so
// that the inner dimension is contiguous.
Operand turned(const Call& call, const Geometry& g, const Operand& w) {
  const int64_t size = area(g.kernel);
  const Operand to = call.scratch(w.dtype, {g.groups, g.channels, g.filters, size});
  record_move(call, to, {w.data, w.dtype, to.shape, {g.filters * g.channels * size, size, g.channels * size, 1}});
  return to;
}

// Does the left matrix start two neighbours of its runs at whole words of 64 bits?
bool in_words(Pass pass, const Geometry& g, const Operand& left) {
  const int64_t run =
      pass == kOfKernels ? area(g.result) : (pass == kForward ? g.channels : g.filters) * area(g.kernel);
  return left.dtype == BP_FLOAT32 && left.data % 8 == 0 && run % 2 == 0;
}

void record(const Call& call, Pass pass, const Geometry& g, const Operand& result, const Operand& left_tensor,
            const Operand& right) {
  const Product p = product_of(pass, g);
  const Device& device = call.stream().device();
  const bool blocks = device.uses_blocks();
  const Operand left = blocks && pass == kOfImages ? turned(call, g, left_tensor) : left_tensor;
  const Tiles tiles = blocks ? blocks_for(p.rows, p.columns, device.subgroup_size(), result.dtype == BP_FLOAT64 ? 1 : 4)
                             : tiles_for(p.rows, p.columns, 4);
  const int64_t slices = slices_for(tiles.count * g.groups, p.inner);
  Operand partial = result;
  if (slices > 1) {
    Sizes shape = result.shape;
    shape.insert(shape.begin(), slices);
    partial = call.scratch(partial_dtype(result.dtype), shape);
  }
  const auto n = [](int64_t value) { return static_cast<uint32_t>(value); };
  Push push = call.push();
  push.at = {partial.data, left.data, right.data};
  push.n = {n(g.images),     n(g.groups),     n(g.channels),    n(g.filters),     n(g.image[0]),  n(g.image[1]),
            n(g.result[0]),  n(g.result[1]),  n(g.kernel[0]),   n(g.kernel[1]),   n(g.stride[0]), n(g.stride[1]),
            n(g.padding[0]), n(g.padding[1]), n(g.dilation[0]), n(g.dilation[1]), n(slices)};
  const bool unit = g.stride[0] == 1 && g.stride[1] == 1;
  const int option = tiles.option | (unit ? 16 : 0) | (blocks && in_words(pass, g, left) ? 32 : 0);
  const Shader shader{
      module_of(blocks ? Module::conv2d_blocks_float32 : Module::conv2d_float32, class_of(result.dtype)),
      {pass, static_cast<uint8_t>(left.dtype), static_cast<uint8_t>(partial.dtype), static_cast<uint8_t>(option)}};
  const int64_t parts = tiles.count * g.groups * slices;
  call.dispatch(shader, push, n(groups_of(device, parts)), {partial.range()}, {left.range(), right.range()});
  if (slices > 1) record_sum(call, result, partial);
}

// conv2d(x, w, *, stride, padding, dilation, groups), conv2d_input_grad(y, w, shape, *, ...) and
// conv2d_weight_grad(y, x, shape, *, ...).
template <Pass kPass>
void conv2d(const Call& call) {
  const Operand first = call.input(0), second = call.input(1), out = call.output(0);
  const Operand& x = kPass == kForward ? first : kPass == kOfImages ? out : second;
  const Operand& w = kPass == kOfKernels ? out : second;
  const Operand& y = kPass == kForward ? out : first;
  const Geometry g = geometry_of(call, x, w, y, kPass == kForward ? 2 : 3);
  if (out.count() == 0) return;
  if (kPass == kForward)
    record(call, kPass, g, y, w, x);
  else
    record(call, kPass, g, out, kPass == kOfImages ? w : y, kPass == kOfImages ? y : x);
}

constexpr Row kRows[] = {
    {"bp::conv2d", kernel<conv2d<kForward>>, BP_MASK_FLOATING, 0},
    {"bp::conv2d_input_grad", kernel<conv2d<kOfImages>>, BP_MASK_FLOATING, 0},
    {"bp::conv2d_weight_grad", kernel<conv2d<kOfKernels>>, BP_MASK_FLOATING, 0},
};

}  // namespace

void register_conv(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan
