// Ops over the lines of a tensor's last axes, a block per line: softmax, log_softmax, layer_norm with its gradient, and
// rms_norm; by packs, and by elements. Compiled once per floating dtype: BP_CUDA_ELEMENT is how an element is stored.
#include "kernels/device/line.cuh"

namespace backplane::cuda {
namespace {

using T = BP_CUDA_ELEMENT;
using C = Compute<T>;
constexpr int kPack = kPackOf<T>;

// body(offset of the line in bytes), line after line.
template <class F>
__device__ void each_line(const NormalizedLines& lines, F body) {
  for (uint32_t line = blockIdx.x; line < lines.count; line += gridDim.x)
    body(uint64_t{line} * lines.length * sizeof(T));
}

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

// The larger number; a NaN counts for nothing.
struct Larger {
  template <class X>
  static __device__ X join(X x, X y) {
    return fmax(x, y);
  }
};

// Of elements: the largest, and the sum of their exponentials, each a quotient by that of `shift_of` the largest.
struct Weight {
  C top, sum;
};
// Where all elements are -inf, their exponentials are zeros.
__device__ C shift_of(C top) { return top == lowest_of<C>() ? C{} : top; }

// A NaN makes one of the sum, and so of each result.
template <bool kLog, int kCount>
__device__ void softmax_or_log(const NormalizedLines& lines) {
  Exchange<Weight> exchange;
  each_line(lines, [&](uint64_t offset) {
    Line<T, kCount> x(lines.x + offset, lines.length);
    Weight own{lowest_of<C>(), C{}};
    x.each([&](C& value) { own.top = Larger::join(own.top, value); });
    own.top = join_lanes<Larger>(own.top);
    const C shift = shift_of(own.top);
    x.each([&](C& value) {
      const C power = exponential(value - shift);
      own.sum += power;
      if constexpr (!kLog) value = power;
    });
    own.sum = join_lanes<Sum>(own.sum);
    const Weight given = exchange(own);
    const C top = join_lanes<Larger>(given.top, warps_of_block()), last_shift = shift_of(top);
    const C sum = join_lanes<Sum>(given.sum * exponential(given.top - last_shift), warps_of_block());
    if constexpr (kLog) {
      const C logarithm = scalar::log::of(sum);
      const auto result = [=](C value) { return value - last_shift - logarithm; };
      x.write(lines.out + offset, result, result);
    } else {
      const C scale = exponential(own.top - last_shift) / sum;
      const auto of_power = [=](C power) { return power * scale; };
      const auto result = [=](C value) { return exponential(value - shift) * scale; };
      if constexpr (Line<T, kCount>::kKeeps)
        x.write(lines.out + offset, of_power, result);
      else
        x.write(lines.out + offset, result, result);
    }
  });
}

template <int kCount>
__device__ void softmax(const NormalizedLines& lines) {
  softmax_or_log<false, kCount>(lines);
}
template <int kCount>
__device__ void log_softmax(const NormalizedLines& lines) {
  softmax_or_log<true, kCount>(lines);
}

struct Moments {
  C mean, scale;  // scale: 1 / sqrt(variance + eps)
};

// Sums of a line's elements, and of the squares of their distances from the mean: those of each warp around its own
// mean, joined as Chan, Golub and LeVeque do in "Algorithms for Computing the Sample Variance", 1983.
template <int kCount>
class MomentsOfLines {
 public:
  struct Sums {
    C elements, squares;
  };

  __device__ explicit MomentsOfLines(const NormalizedLines& lines)
      : length_(static_cast<C>(lines.length)),
        eps_(static_cast<C>(lines.eps)),
        own_count_(count_of_warp(lines.length, threadIdx.x / kWarp)),
        given_count_(count_of_warp(lines.length, threadIdx.x % warps_of_block())) {}

  __device__ Moments operator()(Line<T, kCount>& x, Exchange<Sums>& exchange) const {
    Sums own{};
    x.each([&](C& value) { own.elements += value; });
    own.elements = join_lanes<Sum>(own.elements);
    const C near = own.elements / own_count_;
    x.each([&](C& value) { own.squares = fma(value - near, value - near, own.squares); });
    own.squares = join_lanes<Sum>(own.squares);
    const Sums given = exchange(own);
    const C mean = join_lanes<Sum>(given.elements, warps_of_block()) / length_;
    const C off = given.elements / given_count_ - mean;
    const C squares = join_lanes<Sum>(given.squares + given_count_ * off * off, warps_of_block());
    return {mean, reciprocal_root(squares / length_ + eps_)};
  }

 private:
  // Every warp has some: a block that is longer than a warp has more packs than threads.
  static __device__ C count_of_warp(uint32_t length, uint32_t warp) {
    return static_cast<C>(Line<T, kCount>::elements_of(length, warp));
  }

  C length_, eps_, own_count_, given_count_;
};

template <int kCount>
__device__ void layer_norm(const NormalizedLines& lines) {
  const MomentsOfLines<kCount> moments(lines);
  Exchange<typename MomentsOfLines<kCount>::Sums> exchange;
  each_line(lines, [&](uint64_t offset) {
    Line<T, kCount> x(lines.x + offset, lines.length);
    const Moments m = moments(x, exchange);
    x.write_beside(lines.out + offset, lines.weight, lines.bias, [&](C value, C weight, C bias) {
      const C normal = (value - m.mean) * m.scale;
      const C scaled = lines.weight ? normal * weight : normal;
      return lines.bias ? scaled + bias : scaled;
    });
  });
}

template <int kCount>
__device__ void rms_norm(const NormalizedLines& lines) {
  Exchange<C> exchange;
  each_line(lines, [&](uint64_t offset) {
    Line<T, kCount> x(lines.x + offset, lines.length);
    C squares{};
    x.each([&](C& value) { squares = fma(value, value, squares); });
    squares = join_lanes<Sum>(exchange(join_lanes<Sum>(squares)), warps_of_block());
    const C scale = reciprocal_root(squares / static_cast<C>(lines.length) + static_cast<C>(lines.eps));
    x.write_beside(lines.out + offset, lines.weight, nullptr,
                   [&](C value, C weight, C) { return lines.weight ? value * scale * weight : value * scale; });
  });
}

template <int kCount>
__device__ void layer_norm_grad(const NormalizedLines& lines) {
  const MomentsOfLines<kCount> moments(lines);
  Exchange<typename MomentsOfLines<kCount>::Sums> exchange;
  struct Gradients {
    C sum, along;
  };
  Exchange<Gradients> exchange_gradients;
  const auto count = static_cast<C>(lines.length);
  each_line(lines, [&](uint64_t offset) {
    Line<T, kCount> x(lines.x + offset, lines.length), h(lines.cotangent + offset, lines.length);
    const Moments m = moments(x, exchange);
    const auto weighted = [&](C cotangent, C weight) { return lines.weight ? cotangent * weight : cotangent; };
    Gradients own{};
    h.each_beside(x, lines.weight, [&](C cotangent, C value, C weight) {
      const C g = weighted(cotangent, weight);
      own.sum += g;
      own.along = fma(g, (value - m.mean) * m.scale, own.along);
    });
    const Gradients given = exchange_gradients({join_lanes<Sum>(own.sum), join_lanes<Sum>(own.along)});
    const C sum = join_lanes<Sum>(given.sum, warps_of_block()) / count;
    const C along = join_lanes<Sum>(given.along, warps_of_block()) / count;
    h.write_beside(lines.out + offset, x, lines.weight, [&](C cotangent, C value, C weight) {
      return m.scale * (weighted(cotangent, weight) - sum - (value - m.mean) * m.scale * along);
    });
  });
}

}  // namespace
}  // namespace backplane::cuda

using backplane::cuda::NormalizedLines;

#define BP_CUDA_LINES_BY(name, ...)                                            \
  extern "C" __global__ void __launch_bounds__(backplane::cuda::kLongestBlock) \
      name(const __grid_constant__ NormalizedLines lines) {                    \
    using namespace backplane::cuda;                                           \
    __VA_ARGS__(lines);                                                        \
  }
#define BP_CUDA_LINES(name)                                    \
  BP_CUDA_LINES_BY(name##_packs, backplane::cuda::name<kPack>) \
  BP_CUDA_LINES_BY(name##_elements, backplane::cuda::name<1>)
BP_CUDA_LINES(softmax)
BP_CUDA_LINES(log_softmax)
BP_CUDA_LINES(layer_norm)
BP_CUDA_LINES(layer_norm_grad)
BP_CUDA_LINES(rms_norm)
