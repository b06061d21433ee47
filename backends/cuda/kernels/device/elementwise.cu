// Every op of the registry from one or two elements of a dtype to one, from the lists of codegen. Compiled once per
// dtype: BP_CUDA_ELEMENT is how an element is stored, BP_CUDA_DTYPE names the dtype that it is computed in,
// BP_CUDA_OTHER, of a float or a complex dtype, the other one of its precision.
//
// A kernel for any strides, and one that moves up to 16 bytes at a time where the innermost dimension allows it.
#include "kernels/device/element.cuh"
#include "kernels/refused.hpp"

namespace backplane::cuda {
namespace {

using In = BP_CUDA_ELEMENT;
using C = Compute<In>;

// What a kernel refuses where the function over elements has some value.
__device__ constexpr DataFault refusal_of(unsigned faults) {
  return kIsInteger<In> ? refused_integer(faults) : DataFault::kNone;
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

// An operand's pack; or its one element, for all of the pack.
template <class Ins, int kCount>
__device__ Ins together(const Loop& loop, int operand, int64_t at) {
  if ((loop.repeated >> operand & 1) == 0) return *reinterpret_cast<const Ins*>(loop.data[operand] + at);
  Ins made;
  const In one = element<In>(loop, operand, at);
#pragma unroll
  for (int k = 0; k < kCount; ++k) made.at[k] = one;
  return made;
}

// The dimensions count packs, and a few elements may follow them, where there is one dimension.
template <int kOperands, class Result, class F>
__device__ void packs(const Loop& loop, F f) {
  constexpr int kCount = together_of(sizeof(In) > sizeof(Result) ? sizeof(In) : sizeof(Result));
  using Ins = Pack<In, kCount>;
  for (uint32_t i = first_index(); i < loop.count; i += index_step()) {
    int64_t at[kOperands + 1];
    place(loop, i, at);
    const Ins x = together<Ins, kCount>(loop, 1, at[1]);
    const Ins y = kOperands == 2 ? together<Ins, kCount>(loop, 2, at[kOperands]) : x;
    Pack<Result, kCount> out;
#pragma unroll
    for (int k = 0; k < kCount; ++k) out.at[k] = narrow<Result>(f(widen(x.at[k]), widen(y.at[k])));
    *reinterpret_cast<Pack<Result, kCount>*>(loop.data[0] + at[0]) = out;
  }
  if (first_index() >= loop.rest) return;
  const int64_t last = int64_t{loop.count} * kCount + first_index();
  const auto from = [&](int operand) { return loop.repeated >> operand & 1 ? 0 : last * sizeof(In); };
  const C x = widen(element<In>(loop, 1, from(1)));
  const C y = widen(element<In>(loop, kOperands, from(kOperands)));
  reinterpret_cast<Result*>(loop.data[0])[last] = narrow<Result>(f(x, y));
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
  extern "C" __global__ void op##_packs(const __grid_constant__ backplane::cuda::Loop loop) {   \
    using namespace backplane::cuda;                                                            \
    const auto f = [&loop](C x, C y) { return call; };                                          \
    packs<operands, typename StoredOf<decltype(f(C{}, C{}))>::Type>(loop, f);                   \
  }
#define BP_CUDA_UNARY(op, function, number) BP_CUDA_KERNELS(op, 1, function(x))
#define BP_CUDA_BINARY(op, function, number) \
  BP_CUDA_KERNELS(op, 2, (refuse<refusal_of(backplane::scalar::op::kFaults)>(loop.error, y), function(x, y)))
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
