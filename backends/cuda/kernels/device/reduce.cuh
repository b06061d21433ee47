// Reductions of one dtype. The order of additions depends on sizes, on the order of axes in memory and on the device,
// so that a result is the same each time.
#pragma once

#include "kernels/device/lanes.cuh"

namespace backplane::cuda {

template <class T>
__device__ T lowest_of() {
  if constexpr (kSame<T, float>) return -bp_inf_float32();
  if constexpr (kSame<T, double>) return -bp_inf_float64();
  if constexpr (kIsBool<T>) return false;
  if constexpr (kIsInteger<T>) return static_cast<T>(-1) < 0 ? static_cast<T>(uint64_t{1} << (8 * sizeof(T) - 1)) : 0;
}
template <class T>
__device__ T highest_of() {
  if constexpr (kSame<T, float>) return bp_inf_float32();
  if constexpr (kSame<T, double>) return bp_inf_float64();
  if constexpr (kIsBool<T>) return true;
  if constexpr (kIsInteger<T>) return static_cast<T>(~lowest_of<T>());
}

struct Sum {
  template <class C>
  static __device__ C start() {
    return C{};
  }
  template <class C>
  static __device__ C join(C total, C x) {
    return add(total, x);
  }
};
struct Prod {
  template <class C>
  static __device__ C start() {
    return convert<C>(true);
  }
  template <class C>
  static __device__ C join(C total, C x) {
    return multiply(total, x);
  }
};
// A NaN, once taken, stays: nothing compares with it.
struct Max {
  template <class C>
  static __device__ C start() {
    return lowest_of<C>();
  }
  template <class C>
  static __device__ C join(C best, C x) {
    return x > best || x != x ? x : best;
  }
  template <class C>
  static __device__ bool is_better(C x, C best) {
    return x > best;
  }
};
struct Min {
  template <class C>
  static __device__ C start() {
    return highest_of<C>();
  }
  template <class C>
  static __device__ C join(C best, C x) {
    return x < best || x != x ? x : best;
  }
  template <class C>
  static __device__ bool is_better(C x, C best) {
    return x < best;
  }
};
// Of bools: the operand is converted as it is read.
struct Any {
  template <class C>
  static __device__ C start() {
    return false;
  }
  template <class C>
  static __device__ C join(C found, C x) {
    return found || x;
  }
};
struct All {
  template <class C>
  static __device__ C start() {
    return true;
  }
  template <class C>
  static __device__ C join(C held, C x) {
    return held && x;
  }
};

// The total of a block in its first thread; every thread of the block calls, which has whole warps and at most
// kThreads.
template <class Op, class C>
__device__ C join_block(C total) {
  __shared__ C of_warp[kThreads / kWarp];
  for (uint32_t lanes = kWarp / 2; lanes > 0; lanes /= 2) total = Op::join(total, from_lane_above(total, lanes));
  if (blockDim.x == kWarp) return total;
  const uint32_t warp = threadIdx.x / kWarp;
  if (threadIdx.x % kWarp == 0) of_warp[warp] = total;
  __syncthreads();
  if (threadIdx.x == 0)
    for (uint32_t k = 1; k < blockDim.x / kWarp; ++k) total = Op::join(total, of_warp[k]);
  __syncthreads();
  return total;
}

template <class Stored, class C>
__device__ C load(const char* at, int32_t dtype, int32_t own) {
  return dtype == own ? widen(*reinterpret_cast<const Stored*>(at)) : load_as<C>(at, dtype);
}

template <class T, class C>
__device__ void store_total(const Reduction& call, uint32_t position, uint32_t chunk, int64_t at, C total) {
  if (call.chunks > 1)
    reinterpret_cast<C*>(call.partial)[uint64_t{position} * call.chunks + chunk] = total;
  else
    *reinterpret_cast<T*>(call.out + at) = narrow<T>(total);
}

// f(k, element) for this thread's share of elements [begin, end) of the reduced ones, where k counts within a pack of
// elements that are taken together: pack p is thread p % blockDim.x's, however the elements lie, so that a view
// that begins elsewhere has the same sum. `begin` is a multiple of a pack.
template <class T, int32_t kDtype, class F>
__device__ void each_reduced(const Reduction& call, const char* line, uint32_t begin, uint32_t end, F f) {
  using C = Compute<T>;
  constexpr int kCount = kPackOf<T>;
  using Together = Pack<T, kCount>;
  const char* first = line + int64_t{begin} * sizeof(T);
  const bool dense = call.reduced.rank <= 1 && call.in_dtype == kDtype &&
                     (call.reduced.x[0] == sizeof(T) || call.reduced.rank == 0) &&
                     reinterpret_cast<uintptr_t>(first) % alignof(Together) == 0;
  const uint32_t packs = (end - begin) / kCount;
  const auto at = [&](uint32_t i) { return load<T, C>(line + place(call.reduced, i).x, call.in_dtype, kDtype); };
  if (dense) {
#pragma unroll 4
    for (uint32_t p = threadIdx.x; p < packs; p += blockDim.x) {
      const Together together = reinterpret_cast<const Together*>(first)[p];
#pragma unroll
      for (int k = 0; k < kCount; ++k) f(k, widen(together.at[k]));
    }
  } else {
    for (uint32_t p = threadIdx.x; p < packs; p += blockDim.x)
#pragma unroll
      for (int k = 0; k < kCount; ++k) f(k, at(begin + p * kCount + k));
  }
  const uint32_t rest = begin + packs * kCount + threadIdx.x;
  if (rest < end) f(0, at(rest));
}

// A block per position and chunk: for operands whose reduced elements lie side by side.
template <class Op, class T, int32_t kDtype>
__device__ void reduce_rows(const Reduction& call) {
  using C = Compute<T>;
  const uint32_t begin = blockIdx.y * call.chunk_size;
  const uint32_t end = min(call.reduced.count, begin + call.chunk_size);
  for (uint32_t position = blockIdx.x; position < call.kept.count; position += gridDim.x) {
    const Offsets at = place(call.kept, position);
    C totals[kPackOf<T>];
#pragma unroll
    for (C& total : totals) total = Op::template start<C>();
    each_reduced<T, kDtype>(call, call.x + at.x, begin, end, [&](int k, C x) { totals[k] = Op::join(totals[k], x); });
#pragma unroll
    for (int k = 1; k < kPackOf<T>; ++k) totals[0] = Op::join(totals[0], totals[k]);
    const C total = join_block<Op>(totals[0]);
    if (threadIdx.x == 0) store_total<T>(call, position, blockIdx.y, at.out, total);
  }
}

// A thread per position and chunk: for operands whose kept elements lie side by side.
template <class Op, class T, int32_t kDtype>
__device__ void reduce_columns(const Reduction& call) {
  using C = Compute<T>;
  const uint32_t begin = blockIdx.y * call.chunk_size;
  const uint32_t end = min(call.reduced.count, begin + call.chunk_size);
  const int64_t step = call.reduced.rank == 0 ? 0 : call.reduced.x[0];
  const bool plain = call.reduced.rank <= 1 && call.in_dtype == kDtype;
  for (uint32_t position = first_index(); position < call.kept.count; position += index_step()) {
    const Offsets at = place(call.kept, position);
    const char* line = call.x + at.x;
    C total = Op::template start<C>();
    if (plain) {
#pragma unroll 8
      for (uint32_t i = begin; i < end; ++i)
        total = Op::join(total, widen(*reinterpret_cast<const T*>(line + i * step)));
    } else {
      for (uint32_t i = begin; i < end; ++i)
        total = Op::join(total, load<T, C>(line + place(call.reduced, i).x, call.in_dtype, kDtype));
    }
    store_total<T>(call, position, blockIdx.y, at.out, total);
  }
}

// The chunks' totals: a warp per position.
template <class Op, class T>
__device__ void reduce_chunks(const Reduction& call) {
  using C = Compute<T>;
  for (uint32_t position = blockIdx.x; position < call.kept.count; position += gridDim.x) {
    const C* totals = reinterpret_cast<const C*>(call.partial) + uint64_t{position} * call.chunks;
    C total = Op::template start<C>();
    for (uint32_t k = threadIdx.x; k < call.chunks; k += kWarp) total = Op::join(total, totals[k]);
    total = join_block<Op>(total);
    if (threadIdx.x == 0) *reinterpret_cast<T*>(call.out + place(call.kept, position).out) = narrow<T>(total);
  }
}

}  // namespace backplane::cuda
