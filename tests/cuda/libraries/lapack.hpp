// LAPACK's routines for the stand-in of cuSOLVER, under one name for the four types. Matrices lie by columns, `lda`
// apart; a routine returns LAPACK's info.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace emulator::lapack {

template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;
};
template <class T>
using Real = typename RealOf<T>::Type;
template <class T>
constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

// `extra`: the work array of reals that routines over complex matrices take before info.
#define BP_LAPACK_NO_REALS(R)
#define BP_LAPACK_REALS(R) R*,
#define BP_LAPACK_DECLARE(T, R, t, orthogonal, hermitian, extra)                                                       \
  extern "C" {                                                                                                         \
  void t##potrf_(const char*, const int*, T*, const int*, int*, size_t);                                               \
  void t##getrf_(const int*, const int*, T*, const int*, int*, int*);                                                  \
  void t##getrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*, int*, size_t); \
  void t##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);                                    \
  void orthogonal##gqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);           \
  void hermitian##ev_(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, extra(R) int*, size_t, \
                      size_t);                                                                                         \
  void t##gesvd_(const char*, const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*, const int*, \
                 T*, const int*, extra(R) int*, size_t, size_t);                                                       \
  }                                                                                                                    \
  inline int potrf(char uplo, int n, T* a, int lda) {                                                                  \
    int info = 0;                                                                                                      \
    t##potrf_(&uplo, &n, a, &lda, &info, 1);                                                                           \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int getrf(int m, int n, T* a, int lda, int* pivots) {                                                         \
    int info = 0;                                                                                                      \
    t##getrf_(&m, &n, a, &lda, pivots, &info);                                                                         \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int getrs(char operation, int n, int columns, const T* a, int lda, const int* pivots, T* b, int ldb) {        \
    int info = 0;                                                                                                      \
    t##getrs_(&operation, &n, &columns, a, &lda, pivots, b, &ldb, &info, 1);                                           \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int geqrf(int m, int n, T* a, int lda, T* tau) {                                                              \
    int info = 0;                                                                                                      \
    const int size = std::max(n, 1);                                                                                   \
    std::vector<T> work(static_cast<size_t>(size));                                                                    \
    t##geqrf_(&m, &n, a, &lda, tau, work.data(), &size, &info);                                                        \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int ungqr(int m, int n, int k, T* a, int lda, const T* tau) {                                                 \
    int info = 0;                                                                                                      \
    const int size = std::max(n, 1);                                                                                   \
    std::vector<T> work(static_cast<size_t>(size));                                                                    \
    orthogonal##gqr_(&m, &n, &k, a, &lda, tau, work.data(), &size, &info);                                             \
    return info;                                                                                                       \
  }
BP_LAPACK_DECLARE(float, float, s, sor, ssy, BP_LAPACK_NO_REALS)
BP_LAPACK_DECLARE(double, double, d, dor, dsy, BP_LAPACK_NO_REALS)
BP_LAPACK_DECLARE(std::complex<float>, float, c, cun, che, BP_LAPACK_REALS)
BP_LAPACK_DECLARE(std::complex<double>, double, z, zun, zhe, BP_LAPACK_REALS)
#undef BP_LAPACK_DECLARE
#undef BP_LAPACK_REALS
#undef BP_LAPACK_NO_REALS

// `real`: the argument for the array of reals.
#define BP_LAPACK_NO_REALS
#define BP_LAPACK_REALS reals.data(),
#define BP_LAPACK_VECTORS(T, R, t, hermitian, real)                                                           \
  inline int heev(char job, char uplo, int n, T* a, int lda, R* w) {                                          \
    int info = 0;                                                                                             \
    const int size = 3 * n + 1;                                                                               \
    std::vector<T> work(static_cast<size_t>(size));                                                           \
    std::vector<R> reals(static_cast<size_t>(size));                                                          \
    hermitian##ev_(&job, &uplo, &n, a, &lda, w, work.data(), &size, real& info, 1, 1);                        \
    return info;                                                                                              \
  }                                                                                                           \
  inline int gesvd(char u_job, char v_job, int m, int n, T* a, int lda, R* s, T* u, int ldu, T* v, int ldv) { \
    int info = 0;                                                                                             \
    const int least = std::min(m, n), size = std::max(3 * least + std::max(m, n), 5 * least) + 1;             \
    std::vector<T> work(static_cast<size_t>(size));                                                           \
    std::vector<R> reals(static_cast<size_t>(5 * least + 1));                                                 \
    t##gesvd_(&u_job, &v_job, &m, &n, a, &lda, s, u, &ldu, v, &ldv, work.data(), &size, real& info, 1, 1);    \
    return info;                                                                                              \
  }
BP_LAPACK_VECTORS(float, float, s, ssy, BP_LAPACK_NO_REALS)
BP_LAPACK_VECTORS(double, double, d, dsy, BP_LAPACK_NO_REALS)
BP_LAPACK_VECTORS(std::complex<float>, float, c, che, BP_LAPACK_REALS)
BP_LAPACK_VECTORS(std::complex<double>, double, z, zhe, BP_LAPACK_REALS)
#undef BP_LAPACK_VECTORS
#undef BP_LAPACK_REALS
#undef BP_LAPACK_NO_REALS

}  // namespace emulator::lapack
