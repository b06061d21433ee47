// max_pool2d_with_indices and avg_pool2d over contiguous images (n, c, h, w), parallel over channels of images; float32
// and, widened some planes at a time, half floats in vectors (pool_lanes.cpp).
#include <algorithm>
#include <limits>

#include "kernels/families.hpp"
#include "kernels/nn/pool_lanes.hpp"
#include "kernels/nn/windows.hpp"
#include "loops/cast_row.hpp"
#include "loops/elementwise.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

using plugin::Compute;

// (Tensor x, Size[] kernel, Size[] stride, Size[] padding); an empty stride means the kernel.
Windows windows_of(const bp_tensor* x, const bp_value* args) {
  Windows w;
  w.height = x->dl.shape[2];
  w.width = x->dl.shape[3];
  read_pair(args[1], w.kernel);
  read_pair(args[2].count == 0 ? args[1] : args[2], w.stride);
  read_pair(args[3], w.padding);
  w.dilation[0] = w.dilation[1] = 1;
  for (int d = 0; d < 2; ++d)
    (d == 0 ? w.out_height : w.out_width) = (x->dl.shape[2 + d] + 2 * w.padding[d] - w.kernel[d]) / w.stride[d] + 1;
  return w;
}

// body(first plane, end) over all channels of images.
template <class Body>
void for_planes(const bp_frame* frame, const bp_tensor* x, const Windows& w, Body&& body) {
  const int64_t planes = x->dl.shape[0] * x->dl.shape[1];
  const int64_t grain = std::max<int64_t>(kCheapGrain / std::max<int64_t>(w.outputs() * w.taps(), 1), 1);
  if (planes <= grain) return body(0, planes);
  plugin::parallel_for(frame, 0, planes, grain, body);
}
template <class Body>
void for_each_plane(const bp_frame* frame, const bp_tensor* x, const Windows& w, Body&& body) {
  for_planes(frame, x, w, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) body(plane);
  });
}

// window(plane, window number, first row, end row, first column, end column): the part of each window inside the image.
template <class Window>
void for_each_window(const bp_frame* frame, const bp_tensor* x, const Windows& w, Window&& window) {
  for_each_plane(frame, x, w, [&](int64_t plane) {
    for (int64_t oy = 0; oy < w.out_height; ++oy) {
      const int64_t top = oy * w.stride[0] - w.padding[0];
      for (int64_t ox = 0; ox < w.out_width; ++ox) {
        const int64_t left = ox * w.stride[1] - w.padding[1];
        window(plane, oy * w.out_width + ox, std::max<int64_t>(top, 0), std::min(top + w.kernel[0], w.height),
               std::max<int64_t>(left, 0), std::min(left + w.kernel[1], w.width));
      }
    }
  });
}

// pool(image, first result, results) over planes of half floats in float32: some at a time, which stay in the cache.
// The results are rounded once, when they are whole; `out` may be null.
template <class T, class Pool>
void for_each_wide_plane(const bp_frame* frame, const bp_tensor* x, const Windows& w, T* out, Pool&& pool) {
  constexpr int64_t kElements = 4096;
  const int64_t image = w.image(), n = w.outputs(),
                some = std::max<int64_t>(kElements / std::max<int64_t>(image, 1), 1);
  for_planes(frame, x, w, [&](int64_t begin, int64_t end) {
    const int64_t most = std::min(some, end - begin);
    const Scratch<float> images(image * most), results(n * most);
    const auto bytes = [](auto* p) { return reinterpret_cast<char*>(p); };
    for (int64_t first = begin; first < end; first += most) {
      const int64_t count = std::min(most, end - first);
      cast_row(plugin::kDtypeOf<T>, bytes(reinterpret_cast<T*>(data_of(x)) + first * image), sizeof(T), BP_FLOAT32,
               bytes(images.get()), sizeof(float), count * image);
      for (int64_t i = 0; i < count; ++i)
        pool(images.get() + i * image, (first + i) * n, out == nullptr ? nullptr : results.get() + i * n);
      if (out == nullptr) continue;
      cast_row(BP_FLOAT32, bytes(results.get()), sizeof(float), plugin::kDtypeOf<T>, bytes(out + first * n), sizeof(T),
               count * n);
    }
  });
}
template <class T>
constexpr bool kHalf = std::is_same_v<T, plugin::float16> || std::is_same_v<T, plugin::bfloat16>;

// The first of equals, the first NaN where there is one. A window that lies wholly in the padding is -inf, at its
// corner clamped into the image.
template <class T>
void max_pool(const bp_frame* frame, const bp_tensor* x, const Windows& w, T* values, int64_t* indices) {
  const T* data = reinterpret_cast<const T*>(data_of(x));
  if constexpr (std::is_same_v<T, float>)
    if (pools_in_lanes(w))
      return for_each_plane(frame, x, w, [&](int64_t plane) {
        max_pool_lanes(w, data + plane * w.image(), values == nullptr ? nullptr : values + plane * w.outputs(),
                       indices == nullptr ? nullptr : indices + plane * w.outputs());
      });
  if constexpr (kHalf<T>)
    if (pools_in_lanes(w))
      return for_each_wide_plane(frame, x, w, values, [&](const float* image, int64_t at, float* results) {
        max_pool_lanes(w, image, results, indices == nullptr ? nullptr : indices + at);
      });
  for_each_window(frame, x, w,
                  [&](int64_t plane, int64_t at, int64_t top, int64_t bottom, int64_t left, int64_t right) {
                    const T* image = data + plane * w.image();
                    auto best = -std::numeric_limits<Compute<T>>::infinity();
                    int64_t position = std::min(top, w.height - 1) * w.width + std::min(left, w.width - 1);
                    bool found = false;
                    for (int64_t row = top; row < bottom; ++row)
                      for (int64_t column = left; column < right; ++column) {
                        const Compute<T> candidate = image[row * w.width + column];
                        if (!found || candidate > best || (candidate != candidate && best == best)) {
                          best = candidate;
                          position = row * w.width + column;
                          found = true;
                        }
                      }
                    if (values != nullptr) values[plane * w.outputs() + at] = T(best);
                    if (indices != nullptr) indices[plane * w.outputs() + at] = position;
                  });
}

template <class T>
void average_pool(const bp_frame* frame, const bp_tensor* x, const Windows& w, T* out) {
  const T* data = reinterpret_cast<const T*>(data_of(x));
  [[maybe_unused]] const Compute<T> scale = Compute<T>(1) / static_cast<Compute<T>>(w.taps());
  constexpr int64_t kManyTaps = 1024;  // sums of more keep their digits in float64 alone
  [[maybe_unused]] const bool in_lanes = pools_in_lanes(w) && w.taps() <= kManyTaps;
  if constexpr (std::is_same_v<T, float>)
    if (in_lanes)
      return for_each_plane(frame, x, w, [&](int64_t plane) {
        sum_pool_lanes(w, data + plane * w.image(), scale, out + plane * w.outputs());
      });
  if constexpr (kHalf<T>)
    if (in_lanes)
      return for_each_wide_plane(frame, x, w, out, [&](const float* image, int64_t, float* results) {
        sum_pool_lanes(w, image, scale, results);
      });
  for_each_window(frame, x, w,
                  [&](int64_t plane, int64_t at, int64_t top, int64_t bottom, int64_t left, int64_t right) {
                    double sum = 0;
                    for (int64_t row = top; row < bottom; ++row)
                      for (int64_t column = left; column < right; ++column)
                        sum += static_cast<double>(Compute<T>(data[plane * w.image() + row * w.width + column]));
                    out[plane * w.outputs() + at] = T(static_cast<Compute<T>>(sum / static_cast<double>(w.taps())));
                  });
}

template <class T>
T* wanted(const bp_value& out) {
  return out.tag == BP_TAG_TENSOR ? reinterpret_cast<T*>(data_of(out.u.t)) : nullptr;
}

bp_status BP_CALL max_pool2d(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    if (x->nbytes == 0) return;
    plugin::dispatch_dtype<BP_MASK_FLOATING>(x->dtype, [&]<class T>() {
      max_pool<T>(frame, x, windows_of(x, args), wanted<T>(outs[0]), wanted<int64_t>(outs[1]));
    });
  });
}

bp_status BP_CALL avg_pool2d(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    if (x->nbytes == 0) return;
    plugin::dispatch_dtype<BP_MASK_FLOATING>(
        x->dtype, [&]<class T>() { average_pool<T>(frame, x, windows_of(x, args), wanted<T>(outs[0])); });
  });
}

}  // namespace

const Family kPool2d([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::max_pool2d_with_indices", "cpu", max_pool2d, .dtypes = BP_MASK_FLOATING));
  registrar.kernel(BP_KERNEL("bp::avg_pool2d", "cpu", avg_pool2d, .dtypes = BP_MASK_FLOATING));
});

}  // namespace backplane::cpu
