// A line of elements that one block takes: its threads hold the first of each as they are stored, and read what lies
// beyond again for each pass over the line. A line moves by packs of 16 bytes, all of which are whole, or by elements.
#pragma once

#include "kernels/device/reduce.cuh"
#include "kernels/lines.hpp"

namespace backplane::cuda {

__device__ inline uint32_t warps_of_block() { return blockDim.x / kWarp; }  // a power of two

// Warps tell each other what they have, with one barrier: of two places that take turns, one is written to again when
// every thread has come to the barrier behind the other's use.
template <class Given>
class Exchange {
 public:
  // What warp threadIdx.x % warps_of_block() has; every thread calls.
  __device__ Given operator()(const Given& own) {
    __shared__ Given given[2][kLongestBlock / kWarp];
    if (blockDim.x == kWarp) return own;
    turn_ = 1 - turn_;
    if (threadIdx.x % kWarp == 0) given[turn_][threadIdx.x / kWarp] = own;
    __syncthreads();
    return given[turn_][threadIdx.x % warps_of_block()];
  }

 private:
  int turn_ = 0;
};

// Elements that move together, in words, so that two half floats take one register.
template <class T, int kCount>
struct alignas(kCount == 1 ? alignof(uint32_t) : sizeof(T) * kCount) Words {
  uint32_t words[(sizeof(T) * kCount + 3) / 4];

  __device__ Compute<T> operator[](int k) const {
    if constexpr (kIsHalf<T>)
      return widen(T{static_cast<uint16_t>(words[k / 2] >> 16 * (k % 2))});
    else if constexpr (sizeof(T) == 4)
      return __uint_as_float(words[k]);
    else
      return __hiloint2double(static_cast<int>(words[2 * k + 1]), static_cast<int>(words[2 * k]));
  }
  // From the first on, one after the other.
  __device__ void set(int k, T x) {
    if constexpr (kIsHalf<T>) {
      words[k / 2] = k % 2 == 0 ? x.bits : words[k / 2] | static_cast<uint32_t>(x.bits) << 16;
    } else if constexpr (sizeof(T) == 4) {
      words[k] = __float_as_uint(x);
    } else {
      words[2 * k] = static_cast<uint32_t>(__double2loint(x));
      words[2 * k + 1] = static_cast<uint32_t>(__double2hiint(x));
    }
  }
};

template <class T, int kCount>
class Line {
 public:
  using C = Compute<T>;
  static constexpr bool kKeeps = kSame<T, C>;  // what each() changes of the elements that are held

  // All that is held is on its way before the first of it is looked at.
  __device__ Line(const char* x, uint32_t length) : x_(x), length_(length) {
#pragma unroll
    for (int h = 0; h < kHeld; ++h)
      if (is_inside(pack(h))) held_[h] = fetch(x_, pack(h));
  }

  // f(element) for this thread's elements.
  template <class F>
  __device__ void each(F f) {
    packs([&](uint32_t, Together& values) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        C value = values[k];
        f(value);
        if constexpr (kKeeps) values.set(k, value);
      }
    });
  }

  // out[i] = of_held(element) where each() keeps what it changes, else of_read(element).
  template <class F, class G>
  __device__ void write(char* out, F of_held, G of_read) {
    packs([&](uint32_t p, Together& values) { store(out, p, [&](int k) { return of_held(values[k]); }); },
          [&](uint32_t p, Together& values) { store(out, p, [&](int k) { return of_read(values[k]); }); });
  }

  // out[i] = f(element, weight[i], bias[i]), of operands of one line's length; f does not look at one that is nullptr.
  template <class F>
  __device__ void write_beside(char* out, const char* weight, const char* bias, F f) {
    packs([&](uint32_t p, Together& values) {
      const Together w = fetch_if(weight, p), b = fetch_if(bias, p);
      store(out, p, [&](int k) { return f(values[k], w[k], b[k]); });
    });
  }

  // f(element, y's, weight) of this line's elements and of those of another of its length that lie beside them.
  template <class F>
  __device__ void each_beside(Line& y, const char* weight, F f) {
    packs_beside(y, weight, [&](uint32_t, Together& xs, Together& ys, const Together& weights) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) f(xs[k], ys[k], weights[k]);
    });
  }
  // out[i] = f(element, y's, weight) of them.
  template <class F>
  __device__ void write_beside(char* out, Line& y, const char* weight, F f) {
    packs_beside(y, weight, [&](uint32_t p, Together& xs, Together& ys, const Together& weights) {
      store(out, p, [&](int k) { return f(xs[k], ys[k], weights[k]); });
    });
  }

  // How many elements of a line a warp has.
  static __device__ uint32_t elements_of(uint32_t length, uint32_t warp) {
    const uint32_t packs = length / kCount, rest = packs % blockDim.x, before = warp * kWarp;
    return (packs / blockDim.x * kWarp + min(rest > before ? rest - before : 0, kWarp)) * kCount;
  }

 private:
  static constexpr int kHeld = kCount > 1 ? kHeldPacks : kHeldElements;
  using Together = Words<T, kCount>;

  static __device__ uint32_t pack(int h) { return threadIdx.x + h * blockDim.x; }
  __device__ bool is_inside(uint32_t p) const { return p * kCount < length_; }

  static __device__ Together fetch(const char* from, uint32_t p) {
    if constexpr (kCount == 1) {
      Together one;
      one.set(0, reinterpret_cast<const T*>(from)[p]);
      return one;
    } else {
      return reinterpret_cast<const Together*>(from)[p];
    }
  }
  static __device__ Together fetch_if(const char* from, uint32_t p) {
    return from != nullptr ? fetch(from, p) : Together{};
  }

  template <class F>
  static __device__ void store(char* out, uint32_t p, F f) {
    if constexpr (kCount == 1) {
      reinterpret_cast<T*>(out)[p] = narrow<T>(f(0));
    } else {
      Together together;
#pragma unroll
      for (int k = 0; k < kCount; ++k) together.set(k, narrow<T>(f(k)));
      reinterpret_cast<Together*>(out)[p] = together;
    }
  }

  // of_held(p, elements) and of_read(p, elements) for this thread's packs.
  template <class F, class G>
  __device__ void packs(F of_held, G of_read) {
#pragma unroll
    for (int h = 0; h < kHeld; ++h)
      if (is_inside(pack(h))) of_held(pack(h), held_[h]);
    for (uint32_t p = pack(kHeld); is_inside(p); p += blockDim.x) {
      Together values = fetch(x_, p);
      of_read(p, values);
    }
  }
  template <class F>
  __device__ void packs(F f) {
    packs(f, f);
  }

  template <class F>
  __device__ void packs_beside(Line& y, const char* weight, F f) {
#pragma unroll
    for (int h = 0; h < kHeld; ++h)
      if (is_inside(pack(h))) f(pack(h), held_[h], y.held_[h], fetch_if(weight, pack(h)));
    for (uint32_t p = pack(kHeld); is_inside(p); p += blockDim.x) {
      Together xs = fetch(x_, p), ys = fetch(y.x_, p);
      f(p, xs, ys, fetch_if(weight, p));
    }
  }

  const char* x_;
  uint32_t length_;
  Together held_[kHeld];
};

}  // namespace backplane::cuda
