// Every op of the registry from one or two elements of a dtype to one, from the lists of codegen. Compiled once per
// dtype: BP_CUDA_ELEMENT is how an element is stored, BP_CUDA_DTYPE names the dtype that it is computed in,
// BP_CUDA_OTHER, of a float or a complex dtype, the other one of its precision.
//
// A kernel for any strides, and one for contiguous operands that moves up to 16 bytes at a time.
#include "kernels/device/element.cuh"
#include "kernels/refused.hpp"

namespace backplane::cuda {
namespace {

using In = BP_CUDA_ELEMENT;
using C = Compute<In>;

// What a kernel refuses where the function over elements has some value.
__device__ constexpr DataFault refusal_of(const char* op) {
  return kIsInteger<In> ? refused_integer(op) : DataFault::kNone;
}
template <DataFault kRefused, class Y>
__device__ void refuse(DataError* error, Y y) {
  if constexpr (kRefused == DataFault::kDivisorZero) {
    if (y == 0) report(error, kRefused, 0);
  } else if constexpr (kRefused == DataFault::kNegativeExponent) {
    if (y < 0) report(error, kRefused, static_cast<int64_t>(y));
  }
}

template <class T>
__device__ T element(const Loop& loop, int operand, int64_t at) {
  return *reinterpret_cast<const T*>(loop.data[operand] != nullptr
                                         ? loop.data[operand] + at
                                         : reinterpret_cast<const char*>(loop.numbers[operand].bytes));
}

template <int kOperands, class Result, class F>
__device__ void strided(const Loop& loop, F f) {
  for (uint32_t i = first_index(); i < loop.count; i += index_step()) {
    int64_t at[kOperands + 1];
    place(loop, i, at);
    const C x = widen(element<In>(loop, 1, at[1]));
    const C y = kOperands == 2 ? widen(element<In>(loop, 2, at[kOperands])) : x;
    *reinterpret_cast<Result*>(loop.data[0] + at[0]) = narrow<Result>(f(x, y));
  }
}

template <int kOperands, class Result, class F>
__device__ void flat(const Loop& loop, F f) {
  constexpr int kLargest = sizeof(In) > sizeof(Result) ? sizeof(In) : sizeof(Result);
  constexpr int kCount = kLargest >= 16 ? 1 : kLargest == 8 ? 2 : 4;
  using Ins = Pack<In, kCount>;
  const uint32_t packs = loop.count / kCount;
  const auto* xs = reinterpret_cast<const Ins*>(loop.data[1]);
  const auto* ys = reinterpret_cast<const Ins*>(loop.data[kOperands]);
  Ins fixed_x, fixed_y;
  for (int k = 0; k < kCount; ++k) {
    if (xs == nullptr) fixed_x.at[k] = element<In>(loop, 1, 0);
    if (ys == nullptr) fixed_y.at[k] = element<In>(loop, kOperands, 0);
  }
  for (uint32_t i = first_index(); i < packs; i += index_step()) {
    const Ins x = xs != nullptr ? xs[i] : fixed_x;
    const Ins y = kOperands == 1 ? x : ys != nullptr ? ys[i] : fixed_y;
    Pack<Result, kCount> out;
#pragma unroll
    for (int k = 0; k < kCount; ++k) out.at[k] = narrow<Result>(f(widen(x.at[k]), widen(y.at[k])));
    reinterpret_cast<Pack<Result, kCount>*>(loop.data[0])[i] = out;
  }
  const uint32_t tail = packs * kCount + first_index();
  if (tail >= loop.count) return;
  const C x = widen(element<In>(loop, 1, tail * sizeof(In)));
  const C y = widen(element<In>(loop, kOperands, tail * sizeof(In)));
  reinterpret_cast<Result*>(loop.data[0])[tail] = narrow<Result>(f(x, y));
}

// The type that a result of type R is stored in.
template <class R>
struct StoredOf {
  using Type = R;
};
#if BP_CUDA_IS_HALF
template <>
struct StoredOf<float> {
  using Type = In;
};
#endif

}  // namespace
}  // namespace backplane::cuda

#define BP_CUDA_KERNELS(op, operands, call)                                                     \
  extern "C" __global__ void op##_strided(const __grid_constant__ backplane::cuda::Loop loop) { \
    using namespace backplane::cuda;                                                            \
    const auto f = [&loop](C x, C y) { return call; };                                          \
    strided<operands, typename StoredOf<decltype(f(C{}, C{}))>::Type>(loop, f);                 \
  }                                                                                             \
  extern "C" __global__ void op##_flat(const __grid_constant__ backplane::cuda::Loop loop) {    \
    using namespace backplane::cuda;                                                            \
    const auto f = [&loop](C x, C y) { return call; };                                          \
    flat<operands, typename StoredOf<decltype(f(C{}, C{}))>::Type>(loop, f);                    \
  }
#define BP_CUDA_UNARY(op, function, number) BP_CUDA_KERNELS(op, 1, function(x))
#define BP_CUDA_BINARY(op, function, number) \
  BP_CUDA_KERNELS(op, 2, (refuse<refusal_of(#op)>(loop.error, y), function(x, y)))
#define BP_CUDA_LIST(arity, from, to, row) BP_SCALAR_##arity##_##from##_##to(row)
#define BP_CUDA_ROWS(arity, from, to, row) BP_CUDA_LIST(arity, from, to, row)

BP_CUDA_ROWS(UNARY, BP_CUDA_DTYPE, BP_CUDA_DTYPE, BP_CUDA_UNARY)
BP_CUDA_ROWS(BINARY, BP_CUDA_DTYPE, BP_CUDA_DTYPE, BP_CUDA_BINARY)
#if !BP_CUDA_IS_BOOL
BP_CUDA_ROWS(UNARY, BP_CUDA_DTYPE, bool, BP_CUDA_UNARY)
BP_CUDA_ROWS(BINARY, BP_CUDA_DTYPE, bool, BP_CUDA_BINARY)
#endif
#if BP_CUDA_IS_COMPLEX
BP_CUDA_ROWS(UNARY, BP_CUDA_DTYPE, BP_CUDA_OTHER, BP_CUDA_UNARY)
#elif defined(BP_CUDA_OTHER)
BP_CUDA_ROWS(BINARY, BP_CUDA_DTYPE, BP_CUDA_OTHER, BP_CUDA_BINARY)
#endif
