// Convolutions as products of matrices of which the right one is not written out: its elements are looked up where the
// windows show them (implicit GEMM; Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014).
//
// A block of kConvolutionThreads takes a tile of the result, 8 * kEach rows by 128 columns, each thread kEach by 8
// elements of it. While it multiplies one step of the inner dimension, the next is on its way to registers.
#pragma once

#include "kernels/convolution.hpp"
#include "kernels/device/matmul.cuh"

namespace backplane::cuda {

// One of the two that name an element together: where it begins, and how far down and across.
struct alignas(16) Shown {
  int32_t from, down, across;
};
// Beyond every edge, with whatever it is added to.
__device__ inline Shown nowhere() { return {0, -(1 << 30), 0}; }

// What lies above an index's digits down and across, and these.
struct Digits {
  uint32_t outer;
  int32_t down, across;
};
__device__ inline Digits digits_of(uint32_t i, const Divider& down, const Divider& across) {
  const uint32_t row = divide(i, across), outer = divide(row, down);
  return {outer, static_cast<int32_t>(row - outer * down.size), static_cast<int32_t>(i - row * across.size)};
}

template <class T, bool kDivided>
struct Shower {
  const Convolution& call;
  const T* right;

  __device__ Shown tap(uint32_t i) const {
    const Digits digits = digits_of(i, call.down.taps, call.across.taps);
    const int32_t down = digits.down * call.down.tap_step, across = digits.across * call.across.tap_step;
    return {start(static_cast<int32_t>(digits.outer) * call.down.size * call.across.size, down, across), down, across};
  }
  __device__ Shown place(uint32_t i) const {
    const Digits digits = digits_of(i, call.down.places, call.across.places);
    const int32_t down = digits.down * call.down.place_step + call.down.origin;
    const int32_t across = digits.across * call.across.place_step + call.across.origin;
    return {start(static_cast<int32_t>(digits.outer) * call.right_image, down, across), down, across};
  }
  __device__ Compute<T> operator()(const Shown& a, const Shown& b) const {
    int32_t down = a.down + b.down, across = a.across + b.across, at = a.from + b.from;
    if constexpr (kDivided) {
      if (down < 0 || across < 0) return {};
      const int32_t row = divide(down, call.down.divisor), column = divide(across, call.across.divisor);
      if (row * static_cast<int32_t>(call.down.divisor.size) != down) return {};
      if (column * static_cast<int32_t>(call.across.divisor.size) != across) return {};
      down = row, across = column, at += row * call.across.size + column;
    }
    const bool inside = static_cast<uint32_t>(down) < static_cast<uint32_t>(call.down.size) &&
                        static_cast<uint32_t>(across) < static_cast<uint32_t>(call.across.size);
    return inside ? widen(right[at]) : Compute<T>{};
  }

 private:
  __device__ int32_t start(int32_t plane, int32_t down, int32_t across) const {
    return kDivided ? plane : plane + down * call.across.size + across;
  }
};

// kPlacesInside: the inner dimension are places, the columns taps.
template <class T, int kEach, bool kPlacesInside, bool kDivided>
class Convolver {
  using C = Compute<T>;
  static constexpr int kRows = 8 * kEach, kColumns = kConvolutionColumns, kDepth = kConvolutionDepth;
  static constexpr int kPad = 4;  // threads that store one column, or the depth, meet no bank twice
  static constexpr int kStep = kConvolutionThreads / kDepth;
  using Four = Pack<C, 4>;

  struct Shared {
    alignas(32) C left[2][kDepth][kRows + kPad];
    alignas(32) C right[2][kDepth][kColumns + kPad];
    Shown shown[kPlacesInside ? kColumns : 2 * kDepth];
  };

 public:
  __device__ explicit Convolver(const Convolution& call, Shared& shared)
      : call_(call),
        shared_(shared),
        show_{call, reinterpret_cast<const T*>(call.right) + blockIdx.y * call.right_group} {
    const uint32_t tile = divide(blockIdx.x, call.row_tiles);
    row_ = (blockIdx.x - tile * call.row_tiles.size) * kRows;
    column_ = tile * kColumns;
    begin_ = blockIdx.z * call.slice;
    end_ = min(begin_ + call.slice, call.inner);
  }
  using SharedMemory = Shared;

  __device__ void operator()() {
    prepare();
    C sums[kEach][8] = {};
    C left[kRows / kStep], right[kDepth];
    fetch(begin_, 0, left, right);
    put(0, left, right);
    int now = 0;
    for (uint32_t k = begin_; k < end_; k += kDepth, now = 1 - now) {
      __syncthreads();
      const bool more = k + kDepth < end_;
      if (more) fetch(k + kDepth, 1 - now, left, right);
      if (!kPlacesInside) show_taps(k + 2 * kDepth, now);
      multiply(now, sums);
      if (more) put(1 - now, left, right);
    }
    write(sums);
  }

 private:
  static constexpr bool kTapsInside = !kPlacesInside;

  __device__ void prepare() {
    if constexpr (kPlacesInside) {
      shared_.shown[threadIdx.x] = column_ + threadIdx.x < call_.columns ? show_.tap(column_ + threadIdx.x) : nowhere();
    } else {
      place_ = column_ + threadIdx.x < call_.columns ? show_.place(column_ + threadIdx.x) : nowhere();
      show_taps(begin_, 0);
      show_taps(begin_ + kDepth, 1);
    }
    __syncthreads();
  }
  // A thread for each tap of a step.
  __device__ void show_taps(uint32_t from, int buffer) {
    const uint32_t k = from + threadIdx.x;
    if (threadIdx.x < kDepth) shared_.shown[buffer * kDepth + threadIdx.x] = k < end_ ? show_.tap(k) : nowhere();
  }

  // Of the left matrix, and of the right one where its inner dimension are places, neighbouring threads read neighbours
  // along the inner dimension; else along the columns.
  __device__ void fetch(uint32_t from, int buffer, C (&left)[kRows / kStep], C (&right)[kDepth]) const {
    const uint32_t k = from + threadIdx.x % kDepth, other = threadIdx.x / kDepth;
    const bool inside = k < end_;
    const uint32_t run = divide(k, call_.run);
    const int32_t at = static_cast<int32_t>(run) * call_.left_run + static_cast<int32_t>(k - run * call_.run.size);
    const T* x = reinterpret_cast<const T*>(call_.left) + blockIdx.y * call_.left_group + at;
#pragma unroll
    for (int i = 0; i < kRows / kStep; ++i) {
      const uint32_t row = row_ + other + i * kStep;
      left[i] = inside && row < call_.rows ? widen(x[static_cast<int32_t>(row) * call_.left_row]) : C{};
    }
    if constexpr (kPlacesInside) {
      const Shown place = inside ? show_.place(k) : nowhere();
#pragma unroll
      for (int i = 0; i < kDepth; ++i) right[i] = show_(place, shared_.shown[other + i * kStep]);
    } else {
#pragma unroll
      for (int i = 0; i < kDepth; ++i) right[i] = show_(place_, shared_.shown[buffer * kDepth + i]);
    }
  }
  __device__ void put(int buffer, const C (&left)[kRows / kStep], const C (&right)[kDepth]) {
    const uint32_t k = threadIdx.x % kDepth, other = threadIdx.x / kDepth;
#pragma unroll
    for (int i = 0; i < kRows / kStep; ++i) shared_.left[buffer][k][other + i * kStep] = left[i];
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      if constexpr (kPlacesInside)
        shared_.right[buffer][k][other + i * kStep] = right[i];
      else
        shared_.right[buffer][i][threadIdx.x] = right[i];
    }
  }

  // Of a tile's rows a thread has four out of each 32, of its columns four out of each 64.
  static __device__ uint32_t first_row() { return threadIdx.x / 16 * 4; }
  static __device__ uint32_t first_column() { return threadIdx.x % 16 * 4; }

  __device__ void multiply(int buffer, C (&sums)[kEach][8]) const {
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      C x[kEach], y[8];
#pragma unroll
      for (int i = 0; i < kEach; i += 4) copy(&shared_.left[buffer][k][first_row() + i * 8], &x[i]);
#pragma unroll
      for (int j = 0; j < 8; j += 4) copy(&shared_.right[buffer][k][first_column() + j * 16], &y[j]);
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
    }
  }
  static __device__ void copy(const C* from, C* to) {
    const Four four = *reinterpret_cast<const Four*>(from);
#pragma unroll
    for (int k = 0; k < 4; ++k) to[k] = four.at[k];
  }

  __device__ void write(const C (&sums)[kEach][8]) const {
    if (call_.slices > 1)
      write_to(reinterpret_cast<C*>(call_.partial) + uint64_t{blockIdx.z} * call_.out_count, sums);
    else
      write_to(reinterpret_cast<T*>(call_.out), sums);
  }
  template <class Out>
  __device__ void write_to(Out* out, const C (&sums)[kEach][8]) const {
    out += blockIdx.y * static_cast<uint32_t>(call_.out_group);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const uint32_t row = row_ + first_row() + i % 4 + i / 4 * 32;
      if (row >= call_.rows) continue;
#pragma unroll
      for (int j = 0; j < 8; j += 4) {
        const uint32_t column = column_ + first_column() + j * 16;
        if (call_.together && column < call_.columns) {
          Pack<Out, 4> four;
#pragma unroll
          for (int k = 0; k < 4; ++k) four.at[k] = narrow<Out>(sums[i][j + k]);
          *reinterpret_cast<Pack<Out, 4>*>(out + target(row, column)) = four;
        } else {
#pragma unroll
          for (int k = 0; k < 4; ++k)
            if (column + k < call_.columns) out[target(row, column + k)] = narrow<Out>(sums[i][j + k]);
        }
      }
    }
  }
  __device__ uint32_t target(uint32_t row, uint32_t column) const {
    const uint32_t image = divide(column, call_.area);
    return image * call_.out_image + row * call_.area.size + (column - image * call_.area.size);
  }

  const Convolution& call_;
  Shared& shared_;
  Shower<T, kDivided> show_;
  uint32_t row_, column_, begin_, end_;
  Shown place_;  // of this thread's column
};

template <class T>
__device__ void add_slices(const Convolution& call) {
  using C = Compute<T>;
  const C* partial = reinterpret_cast<const C*>(call.partial);
  for (uint32_t i = first_index(); i < call.out_count; i += index_step()) {
    C sum = partial[i];
    for (uint32_t slice = 1; slice < call.slices; ++slice) sum += partial[uint64_t{slice} * call.out_count + i];
    reinterpret_cast<T*>(call.out)[i] = narrow<T>(sum);
  }
}

}  // namespace backplane::cuda
