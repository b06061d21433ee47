// What convolutions look up, and a block's tile of the result: kRows by kConvolutionColumns. Its kConvolutionThreads
// threads bring kDepth steps of the inner dimension at a time, as they are stored, to registers.
//
// The right matrix is not written out: its elements are looked up where the windows show them (implicit GEMM; Chetlur
// et al., "cuDNN: Efficient Primitives for Deep Learning", 2014).
#pragma once

#include "kernels/convolution.hpp"
#include "kernels/device/element.cuh"

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
  __device__ T operator()(const Shown& a, const Shown& b) const {
    int32_t down = a.down + b.down, across = a.across + b.across, at = a.from + b.from;
    bool whole = true;
    if constexpr (kDivided) {
      // Without branches, so that an element is on its way while the next one's place is computed.
      const uint32_t row = divide(down, call.down.divisor), column = divide(across, call.across.divisor);
      whole = (down >= 0) & (across >= 0) & (row * call.down.divisor.size == static_cast<uint32_t>(down)) &
              (column * call.across.divisor.size == static_cast<uint32_t>(across));
      down = static_cast<int32_t>(row), across = static_cast<int32_t>(column), at += down * call.across.size + across;
    }
    const bool inside = whole & (static_cast<uint32_t>(down) < static_cast<uint32_t>(call.down.size)) &
                        (static_cast<uint32_t>(across) < static_cast<uint32_t>(call.across.size));
    return inside ? right[at] : T{};
  }

 private:
  __device__ int32_t start(int32_t plane, int32_t down, int32_t across) const {
    return kDivided ? plane : plane + down * call.across.size + across;
  }
};

// kPlacesInside: the inner dimension are places, the columns taps; else the other way around.
template <class T, int kRows, int kDepth, bool kPlacesInside, bool kDivided>
class ConvolutionTile {
 protected:
  static constexpr int kStep = kConvolutionThreads / kDepth;
  static constexpr int kLeft = kRows / kStep, kRight = kConvolutionColumns / kStep;  // elements that a thread brings
  static constexpr int kShown = kPlacesInside ? kConvolutionColumns : 2 * kDepth;
  static_assert(kRight == kDepth, "a thread brings one of each, or one column");

  __device__ ConvolutionTile(const Convolution& call, Shown* shown)
      : call_(call),
        show_{call, reinterpret_cast<const T*>(call.right) + blockIdx.y * call.right_group},
        shown_(shown) {
    const uint32_t tile = divide(blockIdx.x, call.row_tiles);
    row_ = (blockIdx.x - tile * call.row_tiles.size) * kRows;
    column_ = tile * kConvolutionColumns;
    begin_ = blockIdx.z * call.slice;
    end_ = min(begin_ + call.slice, call.inner);
  }

  // Before the first step is fetched.
  __device__ void prepare() {
    const uint32_t column = column_ + threadIdx.x;
    if constexpr (kPlacesInside) {
      shown_[threadIdx.x] = column < call_.columns ? show_.tap(column) : nowhere();
    } else {
      place_ = column < call_.columns ? show_.place(column) : nowhere();
      show_taps(begin_, 0);
      show_taps(begin_ + kDepth, 1);
    }
    __syncthreads();
  }
  // Of the step from `from` on, into one of two buffers, where that is behind the next step.
  __device__ void show_taps(uint32_t from, int buffer) {
    if (kPlacesInside || threadIdx.x >= kDepth) return;
    const uint32_t k = from + threadIdx.x;
    shown_[buffer * kDepth + threadIdx.x] = k < end_ ? show_.tap(k) : nowhere();
  }

  // Of the left matrix, and of the right one where its inner dimension are places, neighbouring threads read neighbours
  // along the inner dimension: a thread has one step of rows, or columns, that are kStep apart. Else it has one column.
  static __device__ uint32_t own_step() { return threadIdx.x % kDepth; }
  static __device__ uint32_t own_line(int i) { return threadIdx.x / kDepth + i * kStep; }
  __device__ void fetch(uint32_t from, int buffer, T (&left)[kLeft], T (&right)[kRight]) const {
    const uint32_t k = from + own_step();
    const bool inside = k < end_;
    const uint32_t run = divide(k, call_.run);
    const int32_t at = static_cast<int32_t>(run) * call_.left_run + static_cast<int32_t>(k - run * call_.run.size);
    const T* x = reinterpret_cast<const T*>(call_.left) + blockIdx.y * call_.left_group + at;
#pragma unroll
    for (int i = 0; i < kLeft; ++i) {
      const uint32_t row = row_ + own_line(i);
      left[i] = inside && row < call_.rows ? x[static_cast<int32_t>(row) * call_.left_row] : T{};
    }
    if constexpr (kPlacesInside) {
      const Shown place = inside ? show_.place(k) : nowhere();
#pragma unroll
      for (int i = 0; i < kRight; ++i) right[i] = show_(place, shown_[own_line(i)]);
    } else {
#pragma unroll
      for (int i = 0; i < kRight; ++i) right[i] = show_(place_, shown_[buffer * kDepth + i]);
    }
  }

  // Sums of kCount neighbouring columns: into the result, or into this block's slice.
  template <int kCount>
  __device__ void write(uint32_t row, uint32_t column, const Compute<T>* sums) const {
    if (row >= call_.rows) return;
    if (call_.slices > 1)
      write_to<kCount>(reinterpret_cast<Compute<T>*>(call_.partial) + uint64_t{blockIdx.z} * call_.out_count, row,
                       column, sums);
    else
      write_to<kCount>(reinterpret_cast<T*>(call_.out), row, column, sums);
  }

  const Convolution& call_;
  uint32_t row_, column_, begin_, end_;

 private:
  template <int kCount, class Out>
  __device__ void write_to(Out* out, uint32_t row, uint32_t column, const Compute<T>* sums) const {
    out += blockIdx.y * static_cast<uint32_t>(call_.out_group);
    if (call_.together && column < call_.columns) {
      Pack<Out, kCount> together;
#pragma unroll
      for (int k = 0; k < kCount; ++k) together.at[k] = narrow<Out>(sums[k]);
      *reinterpret_cast<Pack<Out, kCount>*>(out + target(row, column)) = together;
    } else {
#pragma unroll
      for (int k = 0; k < kCount; ++k)
        if (column + k < call_.columns) out[target(row, column + k)] = narrow<Out>(sums[k]);
    }
  }
  __device__ uint32_t target(uint32_t row, uint32_t column) const {
    const uint32_t image = divide(column, call_.area);
    return image * call_.out_image + row * call_.area.size + (column - image * call_.area.size);
  }

  Shower<T, kDivided> show_;
  Shown* shown_;
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
