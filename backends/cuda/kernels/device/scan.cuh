// Running sums along a line. The order of additions depends on sizes alone, so that a result is the same each time.
#pragma once

#include "kernels/device/reduce.cuh"

namespace backplane::cuda {

// What nothing sums to: a zero that, unlike 0, leaves -0 as it is.
template <class C>
__device__ C no_sum() {
  if constexpr (kIsComplex<C>)
    return C{-0.0f, -0.0f};
  else if constexpr (kIsReal<C>)
    return -C{};
  else
    return C{};
}

// Of the values of lanes, each lane's sum of those up to its own.
template <class C>
__device__ C sum_of_lanes(C x) {
  const uint32_t lane = threadIdx.x % kWarp;
  for (uint32_t lanes = 1; lanes < kWarp; lanes *= 2) {
    const C below = from_lane_below(x, lanes);
    if (lane >= lanes) x = add(below, x);
  }
  return x;
}

// A block per line takes kHeldPacks rounds of packs at a time: thread t has pack t of each round. What is summed before
// a pack are the rounds before, in its round the warps before, and in its warp the lanes before. Packs of more than one
// element are of lines that lie side by side and are made of whole ones, of the result's dtype.
template <class T, int32_t kDtype, int kCount>
class RunningSum {
 public:
  __device__ explicit RunningSum(const Lines& lines) : lines_(lines) {}

  __device__ void operator()(int64_t line) {
    first_ = line / lines_.inner * lines_.length * lines_.inner + line % lines_.inner;
    C before = no_sum<C>();
    for (int64_t from = 0; from < lines_.length; from += int64_t{kHeldPacks} * blockDim.x * kCount) {
      C values[kHeldPacks][kCount], below[kHeldPacks];
#pragma unroll
      for (int h = 0; h < kHeldPacks; ++h) load(from + place(h), values[h]);
      turn_ = 1 - turn_;
#pragma unroll
      for (int h = 0; h < kHeldPacks; ++h) below[h] = sum_round(h, values[h]);
      before = add_before(before, below, values);
#pragma unroll
      for (int h = 0; h < kHeldPacks; ++h) store(from + place(h), values[h]);
    }
  }

 private:
  using C = Compute<T>;
  static constexpr uint32_t kWarps = kThreads / kWarp;
  static_assert(kHeldPacks * kWarps <= kWarp, "a lane sums up the total of one warp in one round");
  using Together = Pack<T, kCount>;

  static __device__ int64_t place(int h) { return int64_t{threadIdx.x + h * blockDim.x} * kCount; }

  // Warps tell their totals of each round, in one of two places that take turns, so that one barrier is enough.
  __device__ C& total_of(uint32_t round, uint32_t warp) const {
    __shared__ C totals[2][kHeldPacks][kWarps];
    return totals[turn_][round][warp];
  }

  // The running sums of a pack; gives what is before it in its warp.
  __device__ C sum_round(int h, C (&values)[kCount]) const {
#pragma unroll
    for (int k = 1; k < kCount; ++k) values[k] = add(values[k - 1], values[k]);
    const C sum = sum_of_lanes(values[kCount - 1]), below = from_lane_below(sum, 1);
    if (threadIdx.x % kWarp == kWarp - 1) total_of(h, threadIdx.x / kWarp) = sum;
    return threadIdx.x % kWarp == 0 ? no_sum<C>() : below;
  }

  // Gives what is before the next round.
  __device__ C add_before(C before, const C (&below)[kHeldPacks], C (&values)[kHeldPacks][kCount]) const {
    __syncthreads();
    const uint32_t warps = blockDim.x / kWarp, warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const C sums = sum_of_lanes(lane < kHeldPacks * warps ? total_of(lane / warps, lane % warps) : no_sum<C>());
#pragma unroll
    for (uint32_t h = 0; h < kHeldPacks; ++h) {
      const uint32_t place = h * warps + warp;
      const C sum = place == 0 ? no_sum<C>() : from_lane(sums, place - 1);
      const C all_before = add(before, add(sum, below[h]));
#pragma unroll
      for (C& value : values[h]) value = add(all_before, value);
    }
    return add(before, from_lane(sums, kHeldPacks * warps - 1));
  }

  __device__ void load(int64_t k, C (&values)[kCount]) const {
    if (k >= lines_.length) {
#pragma unroll
      for (C& value : values) value = no_sum<C>();
    } else if constexpr (kCount == 1) {
      values[0] = cuda::load<T, C>(lines_.x + (first_ + k * lines_.inner) * lines_.item, lines_.in_dtype, kDtype);
    } else {
      const Together together = *reinterpret_cast<const Together*>(lines_.x + (first_ + k) * sizeof(T));
#pragma unroll
      for (int j = 0; j < kCount; ++j) values[j] = widen(together.at[j]);
    }
  }
  __device__ void store(int64_t k, const C (&values)[kCount]) const {
    if (k >= lines_.length) return;
    Together together;
#pragma unroll
    for (int j = 0; j < kCount; ++j) together.at[j] = narrow<T>(values[j]);
    if constexpr (kCount == 1)
      reinterpret_cast<T*>(lines_.out)[first_ + k * lines_.inner] = together.at[0];
    else
      reinterpret_cast<Together*>(lines_.out)[(first_ + k) / kCount] = together;
  }

  const Lines& lines_;
  int64_t first_ = 0;  // of the line
  int turn_ = 0;
};

template <class T, int32_t kDtype, int kCount>
__device__ void running_sum_rows(const Lines& lines) {
  RunningSum<T, kDtype, kCount> sum(lines);
  for (int64_t line = blockIdx.x; line < lines.count; line += gridDim.x) sum(line);
}

// A thread per line: for lines that lie side by side.
template <class T, int32_t kDtype>
__device__ void running_sum_columns(const Lines& lines) {
  using C = Compute<T>;
  for (int64_t line = first_index(); line < lines.count; line += index_step()) {
    int64_t at = line / lines.inner * lines.length * lines.inner + line % lines.inner;
    C sum = no_sum<C>();
#pragma unroll 8
    for (int64_t k = 0; k < lines.length; ++k, at += lines.inner) {
      sum = add(sum, load<T, C>(lines.x + at * lines.item, lines.in_dtype, kDtype));
      reinterpret_cast<T*>(lines.out)[at] = narrow<T>(sum);
    }
  }
}

}  // namespace backplane::cuda
