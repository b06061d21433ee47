// A line of elements that one block takes: its threads hold the first kHeld packs of each, and read what lies beyond
// again for each pass over the line.
#pragma once

#include "kernels/device/reduce.cuh"

namespace backplane::cuda {

// The total of a block in all of its threads; every thread calls.
template <class Op, class C>
__device__ C join_in_all(C total) {
  __shared__ C of_warp[kLongestBlock / kWarp];
  for (uint32_t lanes = kWarp / 2; lanes > 0; lanes /= 2) total = Op::join(total, from_lane_above(total, lanes));
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = total;
  __syncthreads();
  total = of_warp[0];
  for (uint32_t k = 1; k < blockDim.x / kWarp; ++k) total = Op::join(total, of_warp[k]);
  __syncthreads();
  return total;
}

template <class T>
class Line {
 public:
  using C = Compute<T>;

  __device__ Line(const char* x, uint32_t length) : x_(x, length), length_(length) {
#pragma unroll
    for (int h = 0; h < kHeld; ++h) x_.fetch(pack(h), held_[h]);
  }

  // f(i, element) for this thread's elements; f may change those that are held.
  template <class F>
  __device__ void each(F f) {
#pragma unroll
    for (int h = 0; h < kHeld; ++h) in_pack(pack(h), held_[h], f);
    for (uint32_t p = pack(kHeld); p * kCount < length_; p += blockDim.x) {
      C values[kCount];
      x_.fetch(p, values);
      in_pack(p, values, f);
    }
  }

  // out[i] = of_held(i, element) where each() may have changed the element, else of_read(i, element).
  template <class F, class G>
  __device__ void write(char* out, F of_held, G of_read) {
#pragma unroll
    for (int h = 0; h < kHeld; ++h) store(pack(h), held_[h], out, of_held);
    for (uint32_t p = pack(kHeld); p * kCount < length_; p += blockDim.x) {
      C values[kCount];
      x_.fetch(p, values);
      store(p, values, out, of_read);
    }
  }
  template <class F>
  __device__ void write(char* out, F f) {
    write(out, f, f);
  }

  // out[i] = f(element, weight[i], bias[i]), of operands of one line's length; f does not look at one that is nullptr.
  template <class F>
  __device__ void write_beside(char* out, const char* weight, const char* bias, F f) {
    const Elements weights(weight, length_), biases(bias, length_);
    const auto beside = [&](uint32_t p, C(&values)[kCount]) {
      C w[kCount]{}, b[kCount]{};
      if (weight) weights.fetch(p, w);
      if (bias) biases.fetch(p, b);
      store(p, values, out, [&](uint32_t i, C value) { return f(value, w[i % kCount], b[i % kCount]); });
    };
#pragma unroll
    for (int h = 0; h < kHeld; ++h)
      if (pack(h) * kCount < length_) beside(pack(h), held_[h]);
    for (uint32_t p = pack(kHeld); p * kCount < length_; p += blockDim.x) {
      C values[kCount];
      x_.fetch(p, values);
      beside(p, values);
    }
  }

  // The elements from another line of the same length that lie beside those of a pack: f(i, x, y).
  template <class F>
  static __device__ void each_of_both(Line& x, Line& y, F f) {
#pragma unroll
    for (int h = 0; h < kHeld; ++h)
      x.in_pack(pack(h), x.held_[h], [&](uint32_t i, C& value) { f(i, value, y.held_[h][i % kCount]); });
    for (uint32_t p = pack(kHeld); p * kCount < x.length_; p += blockDim.x) {
      C values[kCount], others[kCount];
      x.x_.fetch(p, values);
      y.x_.fetch(p, others);
      x.in_pack(p, values, [&](uint32_t i, C& value) { f(i, value, others[i % kCount]); });
    }
  }

 private:
  static constexpr int kCount = kPackOf<T>;
  static constexpr int kHeld = kHeldPacks;
  using Together = Pack<T, kCount>;

  // Elements in memory, read by packs.
  class Elements {
   public:
    __device__ Elements(const char* x, uint32_t length)
        : x_(reinterpret_cast<const T*>(x)),
          length_(length),
          aligned_(reinterpret_cast<uintptr_t>(x) % alignof(Together) == 0) {}

    __device__ void fetch(uint32_t p, C (&to)[kCount]) const {
      const uint32_t first = p * kCount;
      if (aligned_ && first + kCount <= length_) {
        const Together together = reinterpret_cast<const Together*>(x_)[p];
#pragma unroll
        for (int k = 0; k < kCount; ++k) to[k] = widen(together.at[k]);
      } else {
#pragma unroll
        for (int k = 0; k < kCount; ++k) to[k] = first + k < length_ ? C(widen(x_[first + k])) : C{};
      }
    }

   private:
    const T* x_;
    uint32_t length_;
    bool aligned_;
  };

  static __device__ uint32_t pack(int h) { return threadIdx.x + h * blockDim.x; }

  template <class F>
  __device__ void in_pack(uint32_t p, C (&values)[kCount], F f) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k)
      if (p * kCount + k < length_) f(p * kCount + k, values[k]);
  }

  template <class F>
  __device__ void store(uint32_t p, C (&values)[kCount], char* out, F f) const {
    const uint32_t first = p * kCount;
    T* to = reinterpret_cast<T*>(out);
    if (first + kCount <= length_ && reinterpret_cast<uintptr_t>(out) % alignof(Together) == 0) {
      Together together;
#pragma unroll
      for (int k = 0; k < kCount; ++k) together.at[k] = narrow<T>(f(first + k, values[k]));
      reinterpret_cast<Together*>(to)[p] = together;
    } else {
      in_pack(p, values, [&](uint32_t i, C& value) { to[i] = narrow<T>(f(i, value)); });
    }
  }

  Elements x_;
  uint32_t length_;
  C held_[kHeld][kCount];
};

}  // namespace backplane::cuda
