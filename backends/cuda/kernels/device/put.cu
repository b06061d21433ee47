// index_put, of elements of one dtype: in the order of index positions, so that of several values for one element the
// last one stays, and sums are the same each time. Compiled once per dtype: BP_CUDA_ELEMENT is how an element is
// stored.
#include "kernels/device/element.cuh"
#include "kernels/device/indexing.cuh"

namespace backplane::cuda {
namespace {

using T = BP_CUDA_ELEMENT;

__device__ T value_of(const Indexing& indexing, const Offsets& kept, uint32_t p) {
  return *reinterpret_cast<const T*>(indexing.picked + kept.out + place(indexing.positions, p).out);
}
__device__ T& element_of(const Indexing& indexing, const Offsets& kept, int64_t offset) {
  return *reinterpret_cast<T*>(indexing.x + kept.x + offset);
}
__device__ T sum_of(T x, T y) { return narrow<T>(add(widen(x), widen(y))); }

// Few positions: a thread per kept element takes them in turn.
template <bool kAccumulate>
__device__ void put_in_turn(const Indexing& indexing) {
  for (uint32_t k = first_index(); k < indexing.kept.count; k += index_step()) {
    const Offsets kept = place(indexing.kept, k);
    for (uint32_t p = 0; p < indexing.positions.count; ++p) {
      int64_t offset;
      if (!indexed_offset(indexing, p, offset)) continue;
      T& element = element_of(indexing, kept, offset);
      const T value = value_of(indexing, kept, p);
      element = kAccumulate ? sum_of(element, value) : value;
    }
  }
}

__device__ uint64_t key_at(const Runs& runs, uint32_t i) {
  return runs.wide ? reinterpret_cast<const uint64_t*>(runs.keys)[i] : reinterpret_cast<const uint32_t*>(runs.keys)[i];
}

// The element, and what a run from `first` on adds to it. Values are fetched several at a time, as a run may be long.
__device__ T run_sum(const Indexing& indexing, const Runs& runs, const Offsets& kept, T sum, uint32_t first,
                     uint64_t key) {
  constexpr uint32_t kAhead = 8;
  const uint32_t count = indexing.positions.count;
  sum = sum_of(sum, value_of(indexing, kept, runs.order[first]));
  for (uint32_t begin = first + 1; begin < count && key_at(runs, begin) == key; begin += kAhead) {
    T values[kAhead];
    bool inside[kAhead];
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) {
      inside[j] = begin + j < count && key_at(runs, begin + j) == key;
      if (inside[j]) values[j] = value_of(indexing, kept, runs.order[begin + j]);
    }
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j)
      if (inside[j]) sum = sum_of(sum, values[j]);
  }
  return sum;
}

// Many positions: a group of threads for each; that of a run's first one takes the sum, that of its last one its value.
template <bool kAccumulate>
__device__ void put_runs(const Indexing& indexing, const Runs& runs) {
  const uint32_t count = indexing.positions.count, step = runs.group * gridDim.y;
  const uint32_t first_kept = threadIdx.x % runs.group + runs.group * blockIdx.y;
  for (uint32_t i = first_index() / runs.group; i < count; i += index_step() / runs.group) {
    const uint64_t key = key_at(runs, i);
    if (key == runs.nowhere) return;
    if (kAccumulate ? i > 0 && key_at(runs, i - 1) == key : i + 1 < count && key_at(runs, i + 1) == key) continue;
    const uint32_t p = runs.order[i];
    const int64_t offset = runs.offsets[p];
    for (uint32_t k = first_kept; k < indexing.kept.count; k += step) {
      const Offsets kept = place(indexing.kept, k);
      T& element = element_of(indexing, kept, offset);
      element = kAccumulate ? run_sum(indexing, runs, kept, element, i, key) : value_of(indexing, kept, p);
    }
  }
}

}  // namespace
}  // namespace backplane::cuda

using backplane::cuda::Indexing;
using backplane::cuda::Runs;

#define BP_CUDA_PUT(name, accumulate)                                               \
  extern "C" __global__ void name(const __grid_constant__ Indexing indexing) {      \
    backplane::cuda::put_in_turn<accumulate>(indexing);                             \
  }                                                                                 \
  extern "C" __global__ void name##_runs(const __grid_constant__ Indexing indexing, \
                                         const __grid_constant__ Runs runs) {       \
    backplane::cuda::put_runs<accumulate>(indexing, runs);                          \
  }
BP_CUDA_PUT(put, false)
BP_CUDA_PUT(put_add, true)
