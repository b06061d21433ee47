// conv2d_columns and max_pool2d_with_indices: the windows of images (n, c, h, w).
#include "kernels/windows.hpp"

#include "kernels/families.hpp"

namespace backplane::cuda {
namespace {

WindowAxis axis_of(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  return {divider(kernel),
          divider(room_of(size, kernel, padding, dilation) / stride + 1),
          static_cast<int32_t>(size),
          static_cast<uint32_t>(stride),
          static_cast<int32_t>(padding),
          static_cast<uint32_t>(dilation)};
}

void launch(const Call& call, const char* function, const Windows& windows) {
  if (windows.count == 0) return;
  call.launch(std::string("windows_") + plugin::dtype_name(call.compute()), function, call.grid_for(windows.count),
              windows);
}

// conv2d_columns(x, kernel, stride, padding, dilation, groups)
void columns(const Call& call) {
  const bp_tensor& x = call.input(0);
  const auto axis = [&](size_t d) {
    return axis_of(x.dl.shape[2 + d], call.integers(1)[d], call.integers(2)[d], call.integers(3)[d],
                   call.integers(4)[d]);
  };
  const int64_t groups = call.integer(5);
  Windows windows{};
  windows.down = axis(0), windows.across = axis(1);
  windows.images = divider(x.dl.shape[0]), windows.channels = divider(x.dl.shape[1] / groups);
  windows.groups = static_cast<uint32_t>(groups);
  windows.count = static_cast<uint32_t>(count_of(call.output()));
  windows.x = data_of(x), windows.out = data_of(call.output());
  launch(call, "conv2d_columns", windows);
}

// max_pool2d_with_indices(x, kernel, stride, padding); an empty stride means the kernel.
void max_pool(const Call& call) {
  const bp_tensor& x = call.input(0);
  const auto strides = call.integers(2).empty() ? call.integers(1) : call.integers(2);
  const auto axis = [&](size_t d) {
    return axis_of(x.dl.shape[2 + d], call.integers(1)[d], strides[d], call.integers(3)[d], 1);
  };
  Windows windows{};
  windows.down = axis(0), windows.across = axis(1);
  windows.x = data_of(x), windows.out = call.wants(0) ? data_of(call.output()) : nullptr;
  windows.count =
      static_cast<uint32_t>(x.dl.shape[0] * x.dl.shape[1] * windows.down.windows.size * windows.across.windows.size);
  windows.indices = call.wants(1) ? data_of(call.output(1)) : nullptr;
  launch(call, "max_pool2d", windows);
}

// Whether the results of x's windows can be counted; `taps`: each window has one per element. What the op refuses, the
// decomposition refuses.
bool are_countable(const bp_tensor& x, const bp_value* args, bool has_dilation, bool taps) {
  Counted elements, results;
  elements.times(x.dl.shape[0]).times(x.dl.shape[1]);
  results = elements;
  for (int d = 0; d < 2; ++d) {
    const bp_value& strides = args[2].count == 0 ? args[1] : args[2];
    const auto windows = windows_along(x.dl.shape[2 + d], args[1].u.ints[d], strides.u.ints[d], args[3].u.ints[d],
                                       has_dilation ? args[4].u.ints[d] : 1);
    if (!windows) return false;
    elements.times(x.dl.shape[2 + d]);
    results.times(*windows);
    if (taps) results.times(args[1].u.ints[d]);
  }
  return elements.fits() && results.fits();
}

bp_status decline(const bp_frame* frame) {
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, "takes images (n, c, h, w), and gives fewer than 2^31 elements");
  return BP_ERROR_NOT_IMPLEMENTED;
}

bool are_images_with_pairs(const bp_value* args, int pairs) {
  if (args[0].tag != BP_TAG_TENSOR || args[0].u.t->dl.ndim != 4) return false;
  for (int k = 1; k <= pairs; ++k)
    if (args[k].count != 2 && (k != 2 || args[k].count != 0)) return false;
  return true;
}

bp_status BP_CALL supports_columns(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  if (!are_images_with_pairs(args, 4) || args[2].count == 0) return decline(frame);
  const int64_t groups = args[5].u.i;
  if (groups < 1 || args[0].u.t->dl.shape[1] % groups != 0) return decline(frame);
  return are_countable(*args[0].u.t, args, true, true) ? BP_OK : decline(frame);
}

bp_status BP_CALL supports_pooling(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  return are_images_with_pairs(args, 3) && are_countable(*args[0].u.t, args, false, false) ? BP_OK : decline(frame);
}

}  // namespace

void register_windows(const Registration& registration) {
  const auto row = [&](const char* op, bp_kernel_fn fn, bp_kernel_fn supported, uint32_t line = __builtin_LINE()) {
    registration.row(op, fn, BP_MASK_FLOATING, BP_KERNEL_CAPTURABLE, __FILE__, line, supported);
  };
  row("conv2d_columns", kernel<columns>, supports_columns);
  row("max_pool2d_with_indices", kernel<max_pool>, supports_pooling);
}

}  // namespace backplane::cuda
