// Elements on the device: half floats as they are stored, the type that each is computed in, conversions between all
// dtypes, and where the elements of a call lie.
#pragma once

#include "backplane/scalar.cuh"
#include "runtime/arguments.hpp"

namespace backplane::cuda {

struct float16 {
  uint16_t bits;
};
struct bfloat16 {
  uint16_t bits;
};
using complex64 = bp_complex64;
using complex128 = bp_complex128;

template <class A, class B>
constexpr bool kSame = false;
template <class A>
constexpr bool kSame<A, A> = true;
template <class T>
constexpr bool kIsHalf = kSame<T, float16> || kSame<T, bfloat16>;
template <class T>
constexpr bool kIsComplex = kSame<T, complex64> || kSame<T, complex128>;
template <class T>
constexpr bool kIsReal = kIsHalf<T> || kSame<T, float> || kSame<T, double>;
template <class T>
constexpr bool kIsBool = kSame<T, bool>;
template <class T>
constexpr bool kIsInteger = !kIsReal<T> && !kIsComplex<T> && !kIsBool<T>;

template <class T>
struct ComputeOf {
  using Type = T;
};
template <>
struct ComputeOf<float16> {
  using Type = float;
};
template <>
struct ComputeOf<bfloat16> {
  using Type = float;
};
template <class T>
using Compute = typename ComputeOf<T>::Type;

// The dtypes by the contract's numbers.
#define BP_CUDA_DTYPES(X)                                                                                             \
  X(0, bool)                                                                                                          \
  X(1, int8_t)                                                                                                        \
  X(2, int16_t)                                                                                                       \
  X(3, int32_t)                                                                                                       \
  X(4, int64_t) X(5, uint8_t) X(6, uint16_t) X(7, uint32_t) X(8, uint64_t) X(9, float16) X(10, bfloat16) X(11, float) \
      X(12, double) X(13, complex64) X(14, complex128)

template <class T>
__device__ Compute<T> widen(T x) {
  if constexpr (kSame<T, float16>) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
  } else if constexpr (kSame<T, bfloat16>) {
    return bp_float32_of_bfloat16(x.bits);
  } else {
    return x;
  }
}
template <class T, class C>
__device__ T narrow(C x) {
  if constexpr (kSame<T, float16>) {
    float16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
    return half;
  } else if constexpr (kSame<T, bfloat16>) {
    return bfloat16{static_cast<uint16_t>(bp_bfloat16_of_float32(x))};
  } else {
    return x;
  }
}

// Between the types that are computed in, as the registry's cast says it; a complex number loses its imaginary part.
template <class Out, class In>
__device__ Out convert(In x) {
  if constexpr (kSame<Out, In>) {
    return x;
  } else if constexpr (kIsHalf<In>) {
    return convert<Out>(widen(x));
  } else if constexpr (kIsComplex<In> && kIsBool<Out>) {
    return x.re != 0 || x.im != 0;
  } else if constexpr (kIsComplex<In> && kIsComplex<Out>) {
    using Part = decltype(Out{}.re);
    return Out{static_cast<Part>(x.re), static_cast<Part>(x.im)};
  } else if constexpr (kIsComplex<In>) {
    return convert<Out>(x.re);
  } else if constexpr (kIsComplex<Out>) {
    return Out{static_cast<decltype(Out{}.re)>(x), 0};
  } else {
    return scalar::cast::of(x, Out{});
  }
}

template <class C>
__device__ C load_as(const char* at, int32_t dtype) {
  switch (dtype) {
#define BP_CUDA_LOAD(number, type) \
  case number:                     \
    return convert<C>(*reinterpret_cast<const type*>(at));
    BP_CUDA_DTYPES(BP_CUDA_LOAD)
#undef BP_CUDA_LOAD
  }
  return C{};
}

__device__ inline int64_t load_integer(const char* at, int32_t dtype) {
  switch (dtype) {
    case 1:
      return *reinterpret_cast<const int8_t*>(at);
    case 2:
      return *reinterpret_cast<const int16_t*>(at);
    case 3:
      return *reinterpret_cast<const int32_t*>(at);
    case 5:
      return *reinterpret_cast<const uint8_t*>(at);
    case 6:
      return *reinterpret_cast<const uint16_t*>(at);
    case 7:
      return *reinterpret_cast<const uint32_t*>(at);
    default:
      return *reinterpret_cast<const int64_t*>(at);
  }
}

// Integers wrap: computed unsigned.
template <class T>
__device__ T add(T x, T y) {
  if constexpr (kIsComplex<T>)
    return T{x.re + y.re, x.im + y.im};
  else if constexpr (kIsInteger<T>)
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  else if constexpr (kIsBool<T>)
    return x || y;
  else
    return x + y;
}
template <class T>
__device__ T multiply(T x, T y) {
  if constexpr (kIsComplex<T>)
    return scalar::multiply::of(x, y);
  else if constexpr (kIsInteger<T>)
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  else if constexpr (kIsBool<T>)
    return x && y;
  else
    return x * y;
}

__device__ inline uint32_t divide(uint32_t i, const Divider& by) { return (__umulhi(i, by.magic) + i) >> by.shift; }

__device__ inline uint32_t first_index() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline uint32_t index_step() { return gridDim.x * blockDim.x; }

// Where element i of each of the first N operands lies.
template <int N>
__device__ void place(const Loop& loop, uint32_t i, int64_t (&at)[N]) {
  for (int k = 0; k < N; ++k) at[k] = 0;
#pragma unroll 1
  for (int d = 0; d < loop.rank; ++d) {
    const uint32_t rest = d + 1 < loop.rank ? divide(i, loop.sizes[d]) : 0;
    const int64_t here = i - rest * loop.sizes[d].size;
#pragma unroll
    for (int k = 0; k < N; ++k) at[k] += here * loop.strides[k][d];
    i = rest;
  }
}

// Elements that lie side by side; one alone is aligned as it is elsewhere.
template <class T, int kCount>
struct alignas(kCount == 1 ? alignof(T) : sizeof(T) * kCount) Pack {
  T at[kCount];
};

// As many as one access of 16 bytes moves, and at most 8.
template <class T>
constexpr int kPackOf = sizeof(T) >= 16  ? 1
                        : sizeof(T) <= 2 ? 8
                                         : 16 / sizeof(T);

struct Offsets {
  int64_t out, x;
};
__device__ inline Offsets place(const Dimensions& dimensions, uint32_t i) {
  Offsets at{0, 0};
#pragma unroll 1
  for (int d = 0; d < dimensions.rank; ++d) {
    const uint32_t rest = d + 1 < dimensions.rank ? divide(i, dimensions.sizes[d]) : 0;
    const int64_t here = i - rest * dimensions.sizes[d].size;
    at.out += here * dimensions.out[d];
    at.x += here * dimensions.x[d];
    i = rest;
  }
  return at;
}

// The first thread to find something wrong says what; the others are left out.
__device__ inline void report(DataError* error, DataFault fault, int64_t value, int64_t axis = 0, int64_t size = 0) {
  if (atomicCAS(&error->taken, 0u, 1u) != 0) return;
  error->value = value;
  error->axis = axis;
  error->size = size;
  error->fault = static_cast<uint32_t>(fault);
}

}  // namespace backplane::cuda
