// One product of matrices of unsigned integers, which wrap; on one thread. Signed ones have the same bits.
#pragma once

#include <cstdint>

namespace backplane::cpu {

// c (m x n) = a (m x k) b (k x n), or c += a b; each by rows without gaps. Throws std::bad_alloc.
void int_gemm(const uint32_t* a, const uint32_t* b, uint32_t* c, int64_t m, int64_t n, int64_t k, bool accumulate);
void int_gemm(const uint64_t* a, const uint64_t* b, uint64_t* c, int64_t m, int64_t n, int64_t k, bool accumulate);

}  // namespace backplane::cpu
