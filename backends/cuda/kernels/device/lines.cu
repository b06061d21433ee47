// Ops over the lines of a tensor's last axes, a block per line: softmax, log_softmax, layer_norm with its gradient, and
// rms_norm. Compiled once per floating dtype: BP_CUDA_ELEMENT is how an element is stored.
#include "kernels/device/line.cuh"

namespace backplane::cuda {
namespace {

using T = BP_CUDA_ELEMENT;
using C = Compute<T>;

// body(offset of the line in bytes), line after line.
template <class F>
__device__ void each_line(const NormalizedLines& lines, F body) {
  for (uint32_t line = blockIdx.x; line < lines.count; line += gridDim.x)
    body(uint64_t{line} * lines.length * sizeof(T));
}

__device__ C at(const char* elements, uint32_t i) { return widen(reinterpret_cast<const T*>(elements)[i]); }

__device__ C reciprocal_root(C x) { return scalar::rsqrt::of(x); }

// Of half floats the approximation is nearer than they are to each other.
__device__ C exponential(C x) {
  if constexpr (kIsHalf<T>) {
    constexpr float kLog2E = 1.44269504f;
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(static_cast<float>(x) * kLog2E));
    return y;
  } else {
    return scalar::exp::of(x);
  }
}

template <bool kLog>
__device__ void softmax(const NormalizedLines& lines) {
  each_line(lines, [&](uint64_t offset) {
    Line<T> x(lines.x + offset, lines.length);
    C top = Max::start<C>();
    x.each([&](uint32_t, C& value) { top = Max::join(top, value); });
    top = join_in_all<Max>(top);
    C sum{};
    if constexpr (kLog) {
      x.each([&](uint32_t, C& value) { sum += exponential(value - top); });
      const C shift = scalar::log::of(join_in_all<Sum>(sum));
      x.write(lines.out + offset, [=](uint32_t, C value) { return value - top - shift; });
    } else {
      x.each([&](uint32_t, C& value) { sum += value = exponential(value - top); });
      const C scale = 1 / join_in_all<Sum>(sum);
      x.write(
          lines.out + offset, [=](uint32_t, C value) { return value * scale; },
          [=](uint32_t, C value) { return exponential(value - top) * scale; });
    }
  });
}

struct Moments {
  C mean, scale;  // scale: 1 / sqrt(variance + eps)
};
__device__ Moments moments(Line<T>& x, const NormalizedLines& lines) {
  C sum{}, squares{};
  x.each([&](uint32_t, C& value) { sum += value; });
  const C mean = join_in_all<Sum>(sum) / static_cast<C>(lines.length);
  x.each([&](uint32_t, C& value) { squares += (value - mean) * (value - mean); });
  const C variance = join_in_all<Sum>(squares) / static_cast<C>(lines.length);
  return {mean, reciprocal_root(variance + static_cast<C>(lines.eps))};
}

__device__ void layer_norm(const NormalizedLines& lines) {
  each_line(lines, [&](uint64_t offset) {
    Line<T> x(lines.x + offset, lines.length);
    const Moments m = moments(x, lines);
    x.write_beside(lines.out + offset, lines.weight, lines.bias, [&](C value, C weight, C bias) {
      const C normal = (value - m.mean) * m.scale;
      const C scaled = lines.weight ? normal * weight : normal;
      return lines.bias ? scaled + bias : scaled;
    });
  });
}

__device__ void rms_norm(const NormalizedLines& lines) {
  each_line(lines, [&](uint64_t offset) {
    Line<T> x(lines.x + offset, lines.length);
    C squares{};
    x.each([&](uint32_t, C& value) { squares += value * value; });
    const C mean = join_in_all<Sum>(squares) / static_cast<C>(lines.length);
    const C scale = reciprocal_root(mean + static_cast<C>(lines.eps));
    x.write_beside(lines.out + offset, lines.weight, nullptr,
                   [&](C value, C weight, C) { return lines.weight ? value * scale * weight : value * scale; });
  });
}

__device__ void layer_norm_grad(const NormalizedLines& lines) {
  const auto count = static_cast<C>(lines.length);
  each_line(lines, [&](uint64_t offset) {
    Line<T> x(lines.x + offset, lines.length), h(lines.cotangent + offset, lines.length);
    const Moments m = moments(x, lines);
    const auto weighted = [&](uint32_t i, C value) { return lines.weight ? value * at(lines.weight, i) : value; };
    C sum{}, along{};
    Line<T>::each_of_both(h, x, [&](uint32_t i, C& cotangent, C value) {
      const C g = weighted(i, cotangent);
      sum += g;
      along += g * ((value - m.mean) * m.scale);
    });
    sum = join_in_all<Sum>(sum) / count;
    along = join_in_all<Sum>(along) / count;
    T* out = reinterpret_cast<T*>(lines.out + offset);
    Line<T>::each_of_both(h, x, [&](uint32_t i, C& cotangent, C value) {
      out[i] = narrow<T>(m.scale * (weighted(i, cotangent) - sum - (value - m.mean) * m.scale * along));
    });
  });
}

}  // namespace
}  // namespace backplane::cuda

using backplane::cuda::NormalizedLines;

#define BP_CUDA_LINES(name, function)                                          \
  extern "C" __global__ void __launch_bounds__(backplane::cuda::kLongestBlock) \
      name(const __grid_constant__ NormalizedLines lines) {                    \
    backplane::cuda::function(lines);                                          \
  }
BP_CUDA_LINES(softmax, softmax<false>)
BP_CUDA_LINES(log_softmax, softmax<true>)
BP_CUDA_LINES(layer_norm, layer_norm)
BP_CUDA_LINES(layer_norm_grad, layer_norm_grad)
BP_CUDA_LINES(rms_norm, rms_norm)
