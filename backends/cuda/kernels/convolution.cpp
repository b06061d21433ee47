// conv2d and its adjoints in the images and in the kernels: by cuDNN where that is there (by_library says when), else
// products of matrices, one of them never stored (device/convolution.cuh). Tensors are contiguous. What the
// kernel cannot count, or the op refuses, is composed.
#include <array>

#include "kernels/convolution.hpp"
#include "kernels/families.hpp"
#include "kernels/windows.hpp"

namespace backplane::cuda {
namespace {

using Pair = std::array<int64_t, 2>;

// x (images, groups * channels, image), w (groups * filters, channels, kernel), y (images, groups * filters, result).
struct Geometry {
  int64_t images, groups, channels, filters;
  Pair image, result, kernel, stride, padding, dilation;
};

int64_t area(const Pair& sizes) { return sizes[0] * sizes[1]; }

// The sizes of three tensors of 4 axes that go together, and may be counted; else nothing.
std::optional<Geometry> geometry_of(std::span<const int64_t> x, std::span<const int64_t> w, std::span<const int64_t> y,
                                    const bp_value* options) {
  if (x.size() != 4 || w.size() != 4 || y.size() != 4) return std::nullopt;
  for (int k = 0; k < 3; ++k)
    if (options[k].count != 2) return std::nullopt;
  const auto pair = [&](int k) { return Pair{options[k].u.ints[0], options[k].u.ints[1]}; };
  const int64_t groups = options[3].u.i;
  if (groups < 1 || groups > 65535 || w[0] % groups != 0 || x[1] != w[1] * groups || y[1] != w[0] || x[0] != y[0])
    return std::nullopt;
  const Geometry g{x[0],         groups,       w[1],    w[0] / groups, {x[2], x[3]},
                   {y[2], y[3]}, {w[2], w[3]}, pair(0), pair(1),       pair(2)};
  for (size_t d = 0; d < 2; ++d)
    if (windows_along(g.image[d], g.kernel[d], g.stride[d], g.padding[d], g.dilation[d]) != g.result[d])
      return std::nullopt;
  for (const auto& shape : {x, w, y}) {
    Counted counted;
    for (const int64_t size : shape) counted.times(size);
    if (!counted.fits()) return std::nullopt;
  }
  // Of a product, and of the offset that is added to an index before the bounds check.
  Counted taps, adjoint_taps;
  taps.times(g.channels).times(g.kernel[0]).times(g.kernel[1]);
  adjoint_taps.times(g.filters).times(g.kernel[0]).times(g.kernel[1]);
  for (size_t d = 0; d < 2; ++d)
    if (!Counted().times(g.kernel[d] * 4).times(g.dilation[d]).fits()) return std::nullopt;
  return taps.fits() && adjoint_taps.fits() ? std::optional(g) : std::nullopt;
}

// conv2d(x, w, *, stride, padding, dilation, groups), conv2d_input_grad(y, w, shape, *, ...) and
// conv2d_weight_grad(y, x, shape, *, ...).
template <Pass kPass>
std::optional<Geometry> geometry_of_call(const bp_value* args, std::span<const int64_t> result) {
  const auto shape = [&](int k) { return std::span<const int64_t>(args[k].u.t->dl.shape, args[k].u.t->dl.ndim); };
  if constexpr (kPass == Pass::kForward) return geometry_of(shape(0), shape(1), result, args + 2);
  if constexpr (kPass == Pass::kOfImages) return geometry_of(result, shape(1), shape(0), args + 3);
  if constexpr (kPass == Pass::kOfKernels) return geometry_of(shape(1), result, shape(0), args + 3);
}

bool is_half(bp_dtype dtype) { return dtype == BP_FLOAT16 || dtype == BP_BFLOAT16; }

int32_t narrow(int64_t counted) { return static_cast<int32_t>(counted); }

// The matrices of a pass, but for where they lie.
Convolution product_of(Pass pass, const Geometry& g) {
  const int64_t taps = g.channels * area(g.kernel), places = g.images * area(g.result);
  Convolution made{};
  const bool of_images = pass == Pass::kOfImages;
  const Pair &shown = of_images ? g.result : g.image, &stood_on = of_images ? g.image : g.result;
  ShownAxis* axes[] = {&made.down, &made.across};
  for (size_t d = 0; d < 2; ++d) {
    const int32_t stride = narrow(g.stride[d]), padding = narrow(g.padding[d]), dilation = narrow(g.dilation[d]);
    *axes[d] = {
        divider(g.kernel[d]),   divider(stood_on[d]),           divider(of_images ? stride : 1), narrow(shown[d]),
        of_images ? 1 : stride, of_images ? padding : -padding, of_images ? -dilation : dilation};
  }
  made.right_group = narrow((of_images ? g.filters : g.channels) * area(shown));
  made.right_image = narrow(g.groups * made.right_group);
  const auto set = [&](int64_t rows, int64_t inner, int64_t columns, int64_t column_area) {
    made.rows = static_cast<uint32_t>(rows), made.inner = static_cast<uint32_t>(inner);
    made.columns = static_cast<uint32_t>(columns), made.area = divider(column_area);
    made.out_group = narrow(rows * column_area), made.out_image = narrow(g.groups * rows * column_area);
  };
  if (pass == Pass::kForward) {
    set(g.filters, taps, places, area(g.result));
    made.left_group = narrow(g.filters * taps), made.left_row = narrow(taps), made.run = divider(taps);
  } else if (of_images) {
    set(g.channels, g.filters * area(g.kernel), g.images * area(g.image), area(g.image));
    made.left_group = narrow(g.filters * taps), made.left_row = narrow(area(g.kernel));
    made.run = divider(area(g.kernel)), made.left_run = narrow(taps);
  } else {
    set(g.filters, places, taps, taps);
    made.left_group = narrow(g.filters * area(g.result)), made.left_row = narrow(area(g.result));
    made.run = divider(area(g.result)), made.left_run = narrow(g.groups * g.filters * area(g.result));
  }
  return made;
}

std::array<int, 2> narrow(const Pair& sizes) { return {narrow(sizes[0]), narrow(sizes[1])}; }

// Which of the two computes: cuDNN, if it is installed and has an algorithm that gives the same bits each time
// without rounding float32 to TF32. In a capture it is always our kernel, since NVIDIA does not say that a first call
// of the library may be captured; and an empty sum is, which the library refuses.
bool by_library(const Call& call, Pass pass, const Geometry& g, const bp_tensor& first, const bp_tensor& second) {
  if (call.is_capturing() || g.images == 0 || g.channels == 0 || area(g.result) == 0) return false;
  Convolutions* library = call.libraries().convolutions();
  if (!library) return false;
  const bp_dtype dtype = call.output().dtype;
  const int channels = narrow(g.groups * g.channels), filters = narrow(g.groups * g.filters);
  const auto [height, width] = narrow(g.image);
  const auto [down, across] = narrow(g.kernel);
  const auto [rows, columns] = narrow(g.result);
  const ConvolutionShape shape{pass,
                               dtype,
                               {narrow(g.images), channels, height, width},
                               {filters, narrow(g.channels), down, across},
                               {narrow(g.images), filters, rows, columns},
                               narrow(g.stride),
                               narrow(g.padding),
                               narrow(g.dilation),
                               narrow(g.groups)};
  const std::shared_ptr<const ConvolutionPlan> plan = library->plan(shape);
  if (!plan->possible()) return false;
  const bool turned = pass != Pass::kForward;  // the ops name y before the other operand
  return library->run(*plan, data_of(turned ? second : first), data_of(turned ? first : second), data_of(call.output()),
                      call.aligned_scratch(plan->workspace()), call.stream());
}

// A few tiles are not enough to keep the device busy: the inner dimension is cut, and the sums of the parts are added.
void set_slices(const Call& call, Convolution& product, uint64_t tiles, uint64_t depth) {
  constexpr uint64_t kLeast = 256;  // elements of the inner dimension that are worth a slice
  const uint64_t wanted = uint64_t{call.multiprocessors()} * 3 / std::max<uint64_t>(tiles, 1);
  const uint64_t slices = std::clamp<uint64_t>(std::min(wanted, product.inner / kLeast), 1, 256);
  const uint64_t steps = (product.inner + slices * depth - 1) / (slices * depth);
  product.slice = static_cast<uint32_t>(std::max<uint64_t>(steps, 1) * depth);
  product.slices = std::max((product.inner + product.slice - 1) / product.slice, 1u);
}

template <Pass kPass>
void convolution(const Call& call) {
  const bp_tensor& out = call.output();
  if (count_of(out) == 0) return;
  const std::optional<Geometry> g =
      geometry_of_call<kPass>(&call.value(0), {out.dl.shape, static_cast<size_t>(out.dl.ndim)});
  BP_CHECK(g, SHAPE, call.op_name(), ": found sizes that do not belong to one convolution");
  const bp_tensor &first = call.input(0), &second = call.input(1);
  if (by_library(call, kPass, *g, first, second)) return;
  Convolution product = product_of(kPass, *g);
  product.left = data_of(kPass == Pass::kOfKernels ? first : second);
  product.right = data_of(kPass == Pass::kOfKernels ? second : first);
  product.out = data_of(out), product.out_count = static_cast<uint32_t>(count_of(out));

  const bool tensor_cores = is_half(out.dtype);
  const bool small_tile = !tensor_cores && (out.dtype == BP_FLOAT64 || (product.rows + 31) / 32 % 2 == 1);
  const uint32_t tile_rows = small_tile ? 32 : 64;
  product.row_tiles = divider((product.rows + tile_rows - 1) / tile_rows);
  const uint64_t tiles =
      uint64_t{product.row_tiles.size} * ((product.columns + kConvolutionColumns - 1) / kConvolutionColumns);
  set_slices(call, product, tiles * static_cast<uint64_t>(g->groups), tensor_cores ? kTensorDepth : kConvolutionDepth);
  product.together = product.area.size % 4 == 0 && reinterpret_cast<uintptr_t>(product.out) % 32 == 0;
  if (product.slices > 1) product.partial = call.aligned_scratch(uint64_t{product.slices} * product.out_count * 8);

  const std::string module = std::string("convolution_") + plugin::dtype_name(out.dtype);
  std::string name = kPass == Pass::kOfKernels ? "places_inside" : "taps_inside";
  if (kPass == Pass::kOfImages && (g->stride[0] > 1 || g->stride[1] > 1)) name += "_divided";
  if (!tensor_cores) name += small_tile ? "_32" : "_64";
  call.launch(module, name,
              {static_cast<uint32_t>(tiles), static_cast<uint32_t>(g->groups), product.slices, kConvolutionThreads},
              product);
  if (product.slices > 1) call.launch(module, "add_slices", call.grid_for(product.out_count), product);
}

// The shape that conv2d's rule gives, or one that fits nothing.
std::vector<int64_t> shape_of_forward(const bp_value* args) {
  const DLTensor &x = args[0].u.t->dl, &w = args[1].u.t->dl;
  if (x.ndim != 4 || w.ndim != 4 || args[2].count != 2 || args[3].count != 2 || args[4].count != 2) return {};
  std::vector<int64_t> shape{x.shape[0], w.shape[0]};
  for (int d = 0; d < 2; ++d) {
    const auto windows =
        windows_along(x.shape[2 + d], w.shape[2 + d], args[2].u.ints[d], args[3].u.ints[d], args[4].u.ints[d]);
    shape.push_back(windows.value_or(-1));
  }
  return shape;
}

template <Pass kPass>
bp_status BP_CALL supports(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  return plugin::guard(frame, [&] {
    const int capability = static_cast<const Row*>(frame->context)->backend->device(frame->ordinal).facts().capability;
    BP_CHECK(!is_half(frame->compute) || capability >= 80, NOT_IMPLEMENTED, "compute capability ", capability / 10, ".",
             capability % 10, "; the kernel of half floats needs 8.0");
    std::vector<int64_t> result;
    if constexpr (kPass == Pass::kForward)
      result = shape_of_forward(args);
    else
      result.assign(args[2].u.ints, args[2].u.ints + args[2].count);
    BP_CHECK(geometry_of_call<kPass>(args, result), NOT_IMPLEMENTED,
             "takes tensors of one convolution, of fewer than 2^31 elements");
  });
}

}  // namespace

void register_convolution(const Registration& registration) {
  const auto row = [&](const char* op, bp_kernel_fn fn, bp_kernel_fn supported, uint32_t line = __builtin_LINE()) {
    registration.row(op, fn, BP_MASK_FLOATING, BP_KERNEL_CAPTURABLE, __FILE__, line, supported);
  };
  row("conv2d", kernel<convolution<Pass::kForward>>, supports<Pass::kForward>);
  row("conv2d_input_grad", kernel<convolution<Pass::kOfImages>>, supports<Pass::kOfImages>);
  row("conv2d_weight_grad", kernel<convolution<Pass::kOfKernels>>, supports<Pass::kOfKernels>);
}

}  // namespace backplane::cuda
