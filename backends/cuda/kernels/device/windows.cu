// Windows of images (n, c, h, w): the columns that a convolution multiplies, and maximum pooling. Compiled once per
// floating dtype: BP_CUDA_ELEMENT is how an element is stored.
#include "kernels/device/element.cuh"

namespace backplane::cuda {
namespace {

using T = BP_CUDA_ELEMENT;

// The parts of an index, innermost first.
struct Places {
  uint32_t rest;
  __device__ uint32_t next(const Divider& size) {
    const uint32_t outer = divide(rest, size), here = rest - outer * size.size;
    rest = outer;
    return here;
  }
};

__device__ int32_t inside(uint32_t window, uint32_t tap, const WindowAxis& axis) {
  return static_cast<int32_t>(window * axis.stride + tap * axis.dilation) - axis.padding;
}

// out: (groups, n, windows down, windows across, channels of a group, taps down, taps across)
__device__ void columns(const Windows& windows) {
  const T* x = reinterpret_cast<const T*>(windows.x);
  for (uint32_t i = first_index(); i < windows.count; i += index_step()) {
    Places places{i};
    const uint32_t tap_x = places.next(windows.across.kernel), tap_y = places.next(windows.down.kernel);
    const uint32_t channel = places.next(windows.channels);
    const uint32_t ox = places.next(windows.across.windows), oy = places.next(windows.down.windows);
    const uint32_t image = places.next(windows.images), group = places.rest;
    const int32_t row = inside(oy, tap_y, windows.down), column = inside(ox, tap_x, windows.across);
    const bool held = row >= 0 && row < windows.down.size && column >= 0 && column < windows.across.size;
    const uint64_t plane = (uint64_t{image} * windows.groups + group) * windows.channels.size + channel;
    reinterpret_cast<T*>(windows.out)[i] =
        held ? x[(plane * windows.down.size + row) * windows.across.size + column] : T{};
  }
}

// out: the largest element of each window, indices: where it is in the flattened image. The first NaN is the largest. A
// window of padding alone has -inf, and the element of the image that lies next to it.
__device__ void max_pool(const Windows& windows) {
  for (uint32_t i = first_index(); i < windows.count; i += index_step()) {
    Places places{i};
    const uint32_t ox = places.next(windows.across.windows), oy = places.next(windows.down.windows);
    const int32_t height = windows.down.size, width = windows.across.size;
    const T* image = reinterpret_cast<const T*>(windows.x) + uint64_t{places.rest} * height * width;
    const int32_t top = inside(oy, 0, windows.down), left = inside(ox, 0, windows.across);
    T best = narrow<T>(-static_cast<Compute<T>>(bp_inf_float32()));
    int32_t at = min(max(top, 0), height - 1) * width + min(max(left, 0), width - 1);
    bool found = false;
    for (uint32_t tap_y = 0; tap_y < windows.down.kernel.size; ++tap_y) {
      const int32_t row = inside(oy, tap_y, windows.down);
      if (row < 0 || row >= height) continue;
      for (uint32_t tap_x = 0; tap_x < windows.across.kernel.size; ++tap_x) {
        const int32_t column = inside(ox, tap_x, windows.across);
        if (column < 0 || column >= width) continue;
        const T value = image[row * width + column];
        const Compute<T> y = widen(value), x = widen(best);
        if (!found || (x == x && !(y <= x))) best = value, at = row * width + column, found = true;
      }
    }
    if (windows.out) reinterpret_cast<T*>(windows.out)[i] = best;
    if (windows.indices) reinterpret_cast<int64_t*>(windows.indices)[i] = at;
  }
}

}  // namespace
}  // namespace backplane::cuda

using backplane::cuda::Windows;

extern "C" __global__ void conv2d_columns(const __grid_constant__ Windows windows) {
  backplane::cuda::columns(windows);
}
extern "C" __global__ void max_pool2d(const __grid_constant__ Windows windows) { backplane::cuda::max_pool(windows); }
