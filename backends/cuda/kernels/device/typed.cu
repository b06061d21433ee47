// Kernels that read elements of one dtype, or write them. Compiled once per dtype: BP_CUDA_ELEMENT is how an element is
// stored, BP_CUDA_NUMBER the contract's number of the dtype.
#include "kernels/device/element.cuh"
#include "kernels/device/extreme.cuh"
#include "kernels/device/matmul.cuh"
#include "kernels/device/reduce.cuh"
#include "kernels/device/scan.cuh"
#include "kernels/device/sort.cuh"

namespace backplane::cuda {
namespace {

using T = BP_CUDA_ELEMENT;
constexpr int32_t kDtype = BP_CUDA_NUMBER;

// From any dtype into T.
__device__ void cast(const Loop& loop) {
  const auto* number = reinterpret_cast<const char*>(loop.numbers[1].bytes);
  for (uint32_t i = first_index(); i < loop.count; i += index_step()) {
    int64_t at[2];
    place(loop, i, at);
    const char* x = loop.data[1] != nullptr ? loop.data[1] + at[1] : number;
    *reinterpret_cast<T*>(loop.data[0] + at[0]) = narrow<T>(load_as<Compute<T>>(x, loop.in_dtype));
  }
}

// Contiguous operands.
template <class In>
__device__ void cast_packs(const Loop& loop) {
  const uint32_t packs = loop.count / kCastTogether;
  for (uint32_t p = first_index(); p < packs; p += index_step()) {
    const auto x = reinterpret_cast<const Pack<In, kCastTogether>*>(loop.data[1])[p];
    Pack<T, kCastTogether> out;
#pragma unroll
    for (int k = 0; k < kCastTogether; ++k) out.at[k] = narrow<T>(convert<Compute<T>>(x.at[k]));
    reinterpret_cast<Pack<T, kCastTogether>*>(loop.data[0])[p] = out;
  }
  const uint32_t rest = packs * kCastTogether + first_index();
  if (rest < loop.count)
    reinterpret_cast<T*>(loop.data[0])[rest] =
        narrow<T>(convert<Compute<T>>(reinterpret_cast<const In*>(loop.data[1])[rest]));
}
__device__ void cast_flat(const Loop& loop) {
  switch (loop.in_dtype) {
#define BP_CUDA_CAST(number, type) \
  case number:                     \
    return cast_packs<type>(loop);
    BP_CUDA_DTYPES(BP_CUDA_CAST)
#undef BP_CUDA_CAST
  }
}

// Integers count exactly, and wrap; else the values are computed in double and rounded once.
__device__ void iota(T* out, int64_t count, int64_t begin, int64_t step, complex128 real_begin, complex128 real_step,
                     bool exact) {
  for (int64_t i = first_index(); i < count; i += index_step()) {
    if (exact) {
      const auto value = static_cast<int64_t>(static_cast<uint64_t>(begin) + static_cast<uint64_t>(i) * step);
      out[i] = narrow<T>(convert<Compute<T>>(value));
    } else {
      const double times = static_cast<double>(i);
      const complex128 value{real_begin.re + times * real_step.re, real_begin.im + times * real_step.im};
      if constexpr (kIsComplex<T>)
        out[i] = convert<T>(value);
      else
        out[i] = narrow<T>(convert<Compute<T>>(value.re));
    }
  }
}

}  // namespace
}  // namespace backplane::cuda

using namespace backplane::cuda;

#define BP_CUDA_REDUCTION(name, Op, Stored, number)                                   \
  extern "C" __global__ void name##_rows(const __grid_constant__ Reduction call) {    \
    reduce_rows<Op, Stored, number>(call);                                            \
  }                                                                                   \
  extern "C" __global__ void name##_columns(const __grid_constant__ Reduction call) { \
    reduce_columns<Op, Stored, number>(call);                                         \
  }                                                                                   \
  extern "C" __global__ void name##_chunks(const __grid_constant__ Reduction call) { reduce_chunks<Op, Stored>(call); }
BP_CUDA_REDUCTION(sum, Sum, T, kDtype)
BP_CUDA_REDUCTION(prod, Prod, T, kDtype)
#if BP_CUDA_IS_BOOL
BP_CUDA_REDUCTION(any, Any, bool, kDtype)
BP_CUDA_REDUCTION(all, All, bool, kDtype)
#endif

extern "C" __global__ void cast(const __grid_constant__ Loop loop) { backplane::cuda::cast(loop); }
extern "C" __global__ void cast_flat(const __grid_constant__ Loop loop) { backplane::cuda::cast_flat(loop); }
extern "C" __global__ void iota(T* out, int64_t count, int64_t begin, int64_t step, complex128 real_begin,
                                complex128 real_step, int exact) {
  backplane::cuda::iota(out, count, begin, step, real_begin, real_step, exact != 0);
}
extern "C" __global__ void __launch_bounds__(kThreads, sizeof(T) == 4    ? 4
                                                       : sizeof(T) == 16 ? 2
                                                                         : 3)
    cumsum_packs(const __grid_constant__ Lines lines) {
  running_sum_rows<T, kDtype, kPackOf<T>>(lines);
}
extern "C" __global__ void cumsum_elements(const __grid_constant__ Lines lines) {
  running_sum_rows<T, kDtype, 1>(lines);
}
extern "C" __global__ void cumsum_columns(const __grid_constant__ Lines lines) {
  running_sum_columns<T, kDtype>(lines);
}

#if !BP_CUDA_IS_BOOL
extern "C" __global__ void matmul(const __grid_constant__ Product call) { backplane::cuda::matmul<T>(call, nullptr); }
#endif
#if BP_CUDA_IS_HALF || defined(BP_CUDA_OTHER)
extern "C" __global__ void matmul_add(const __grid_constant__ Product call, const __grid_constant__ Addend addend) {
  backplane::cuda::matmul<T>(call, &addend);
}
#endif

#if !BP_CUDA_IS_COMPLEX
BP_CUDA_REDUCTION(max, Max, T, kDtype)
BP_CUDA_REDUCTION(min, Min, T, kDtype)
#define BP_CUDA_ARG_EXTREME(name, Op)                                                                                \
  extern "C" __global__ void name##_rows(const __grid_constant__ ArgExtreme call) { arg_extreme_rows<Op, T>(call); } \
  extern "C" __global__ void name##_columns(const __grid_constant__ ArgExtreme call) {                               \
    arg_extreme_columns<Op, T>(call);                                                                                \
  }                                                                                                                  \
  extern "C" __global__ void name##_chunks(const __grid_constant__ ArgExtreme call) { arg_extreme_chunks<Op, T>(call); }
BP_CUDA_ARG_EXTREME(argmax, Max)
BP_CUDA_ARG_EXTREME(argmin, Min)
extern "C" __global__ void sort_in_block(const __grid_constant__ Sorting call) { sort_lines<T>(call); }
#endif
