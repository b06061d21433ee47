// What the tensor cores of compute capability 8.0 take: pieces of 8 by 8 half floats from shared memory, products of 16
// by 8 by 16 that are summed in float, and copies into shared memory that run beside other work.
#pragma once

#include "kernels/device/element.cuh"

namespace backplane::cuda {

// Four matrices of 8 by 8: lane l says where row l % 8 of matrix l / 8 begins. A lane gets of each the elements 2 (l %
// 4) and the next of row l / 4; transposed, of column l / 4.
template <bool kTransposed>
__device__ __forceinline__ void load_matrices(uint32_t (&to)[4], uint32_t at) {
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

// sums += x y, of 16 by 16 and 16 by 8 elements. Lane l has of the sums and of x's quarters the rows l / 4 and l / 4
// + 8.
template <class T>
__device__ __forceinline__ void add_product(float (&sums)[4], const uint32_t (&x)[4], uint32_t y0, uint32_t y1) {
  if constexpr (kSame<T, bfloat16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y0), "r"(y1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y0), "r"(y1));
}

// Two half floats in a register, the first in the lower bits.
template <class T>
__device__ __forceinline__ uint32_t packed(float first, float second) {
  uint32_t both;
  if constexpr (kSame<T, bfloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}

// 16 bytes, or as many zeros where they are not `inside`; there once the thread has waited.
__device__ __forceinline__ void copy_later(uint32_t to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace backplane::cuda
