// The place of the first of the best elements of a line, or of its first NaN. A line may be cut into chunks, whose best
// ones a second kernel joins.
#pragma once

#include "kernels/along_axis.hpp"
#include "kernels/device/reduce.cuh"

namespace backplane::cuda {

template <class C>
struct Candidate {
  C value;
  int64_t place;  // in the line; below 0: there is none
};

template <class Op, class C>
__device__ bool is_better(const Candidate<C>& x, const Candidate<C>& y) {
  if (x.place < 0 || y.place < 0) return x.place >= 0;
  const bool x_nan = x.value != x.value, y_nan = y.value != y.value;
  if (x_nan != y_nan) return x_nan;
  if (x_nan || x.value == y.value) return x.place < y.place;
  return Op::is_better(x.value, y.value);
}

// The best of a block in its first thread; every thread of the block calls.
template <class Op, class C>
__device__ Candidate<C> best_of_block(Candidate<C> best) {
  __shared__ Candidate<C> of_warp[kThreads / kWarp];
  for (uint32_t lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    const Candidate<C> other{from_lane_above(best.value, lanes), from_lane_above(best.place, lanes)};
    if (is_better<Op>(other, best)) best = other;
  }
  if (blockDim.x == kWarp) return best;
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = best;
  __syncthreads();
  if (threadIdx.x == 0)
    for (uint32_t k = 1; k < blockDim.x / kWarp; ++k)
      if (is_better<Op>(of_warp[k], best)) best = of_warp[k];
  __syncthreads();
  return best;
}

// One thread's elements, in the order of their places.
template <class Op, class C>
struct Running {
  C best;
  uint32_t place;

  // The first element is the best where none is better than the start.
  __device__ explicit Running(uint32_t first_place) : best(Op::template start<C>()), place(first_place) {}
  __device__ void take(C x, uint32_t at) {
    if (Op::is_better(x, best) || (x != x && best == best)) best = x, place = at;
  }
};

// Of `count` elements that lie side by side, those of this thread. Several packs are on their way before the first of
// them is looked at.
template <class Op, class T, int kCount>
__device__ Candidate<Compute<T>> best_of_packs(const T* x, uint32_t count) {
  using Together = Pack<T, kCount>;
  const auto* together = reinterpret_cast<const Together*>(x);
  const uint32_t packs = count / kCount, rest = packs * kCount + threadIdx.x;
  Running<Op, Compute<T>> running(threadIdx.x < packs ? threadIdx.x * kCount : rest);
  const auto take = [&](const Together& elements, uint32_t p) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) running.take(widen(elements.at[k]), p * kCount + k);
  };
  uint32_t p = threadIdx.x;
  for (; p + (kHeldPacks - 1) * blockDim.x < packs; p += kHeldPacks * blockDim.x) {
    Together held[kHeldPacks];
#pragma unroll
    for (int h = 0; h < kHeldPacks; ++h) held[h] = together[p + h * blockDim.x];
#pragma unroll
    for (int h = 0; h < kHeldPacks; ++h) take(held[h], p + h * blockDim.x);
  }
  for (; p < packs; p += blockDim.x) take(together[p], p);
  if (rest < count) running.take(widen(x[rest]), rest);
  return {running.best, running.place < count ? int64_t{running.place} : -1};
}

template <class C>
__device__ void store_best(const ArgExtreme& call, int64_t line, Candidate<C> best) {
  best.place += blockIdx.y * call.chunk_size;
  if (call.chunks > 1)
    reinterpret_cast<Candidate<C>*>(call.partial)[line * call.chunks + blockIdx.y] = best;
  else
    reinterpret_cast<int64_t*>(call.lines.out)[line] = best.place;
}

__device__ inline uint32_t chunk_length(const ArgExtreme& call) {
  return static_cast<uint32_t>(min(call.chunk_size, call.lines.length - blockIdx.y * call.chunk_size));
}

// A block per line and chunk: for lines whose elements lie side by side.
template <class Op, class T>
__device__ void arg_extreme_rows(const ArgExtreme& call) {
  using Together = Pack<T, kPackOf<T>>;
  const uint32_t count = chunk_length(call);
  for (int64_t line = blockIdx.x; line < call.lines.count; line += gridDim.x) {
    const T* x = reinterpret_cast<const T*>(call.lines.x) + line * call.lines.length + blockIdx.y * call.chunk_size;
    const bool aligned = reinterpret_cast<uintptr_t>(x) % alignof(Together) == 0;
    const auto best =
        best_of_block<Op>(aligned ? best_of_packs<Op, T, kPackOf<T>>(x, count) : best_of_packs<Op, T, 1>(x, count));
    if (threadIdx.x == 0) store_best(call, line, best);
  }
}

// A thread per line and chunk: for lines that lie side by side.
template <class Op, class T>
__device__ void arg_extreme_columns(const ArgExtreme& call) {
  const uint32_t count = chunk_length(call);
  const int64_t inner = call.lines.inner;
  for (int64_t line = first_index(); line < call.lines.count; line += index_step()) {
    const T* x = reinterpret_cast<const T*>(call.lines.x) + line / inner * call.lines.length * inner + line % inner +
                 blockIdx.y * call.chunk_size * inner;
    Running<Op, Compute<T>> running(0);
#pragma unroll 8
    for (uint32_t k = 0; k < count; ++k) running.take(widen(x[k * inner]), k);
    store_best<Compute<T>>(call, line, {running.best, running.place});
  }
}

// The chunks' best: a warp per line.
template <class Op, class T>
__device__ void arg_extreme_chunks(const ArgExtreme& call) {
  using Best = Candidate<Compute<T>>;
  for (int64_t line = blockIdx.x; line < call.lines.count; line += gridDim.x) {
    const Best* of_chunk = reinterpret_cast<const Best*>(call.partial) + line * call.chunks;
    Best best{Compute<T>{}, -1};
    for (uint32_t k = threadIdx.x; k < call.chunks; k += kWarp)
      if (is_better<Op>(of_chunk[k], best)) best = of_chunk[k];
    best = best_of_block<Op>(best);
    if (threadIdx.x == 0) reinterpret_cast<int64_t*>(call.lines.out)[line] = best.place;
  }
}

}  // namespace backplane::cuda
