// LAPACK's routines, as OpenBLAS exports them, under one name for the four types.
//
// Matrices are column-major; sizes are LAPACK's int. A routine returns its info: 0, or what went wrong. Declared here
// because OpenBLAS's package has no header for them; the trailing size_t are the lengths of Fortran's strings.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/library_call.hpp"

namespace backplane::cpu::lapack {

using Int = int32_t;
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

// What a routine reports through its last argument, with forks held off meanwhile.
template <class Routine>
Int info_of(Routine routine) {
  const LibraryCall call;
  Int info = 0;
  routine(&info);
  return info;
}

// Those whose arguments are the same for all types but for T. `orthogonal` is the prefix of orthogonal and symmetric
// routines, which have names of their own for complex matrices.
#define BP_LAPACK_ROUTINES(T, t, orthogonal)                                                                           \
  extern "C" {                                                                                                         \
  void t##potrf_(const char*, const Int*, T*, const Int*, Int*, size_t);                                               \
  void t##getrf_(const Int*, const Int*, T*, const Int*, Int*, Int*);                                                  \
  void t##getri_(const Int*, T*, const Int*, const Int*, T*, const Int*, Int*);                                        \
  void t##getrs_(const char*, const Int*, const Int*, const T*, const Int*, const Int*, T*, const Int*, Int*, size_t); \
  void t##gelqf_(const Int*, const Int*, T*, const Int*, T*, T*, const Int*, Int*);                                    \
  void orthogonal##glq_(const Int*, const Int*, const Int*, T*, const Int*, const T*, T*, const Int*, Int*);           \
  }                                                                                                                    \
  inline Int potrf(char uplo, Int n, T* a) {                                                                           \
    return info_of([&](Int* info) { t##potrf_(&uplo, &n, a, &n, info, 1); });                                          \
  }                                                                                                                    \
  inline Int getrf(Int m, Int n, T* a, Int* pivots) {                                                                  \
    return info_of([&](Int* info) { t##getrf_(&m, &n, a, &m, pivots, info); });                                        \
  }                                                                                                                    \
  inline Int getrf(Int n, T* a, Int* pivots) { return getrf(n, n, a, pivots); }                                        \
  inline Int getri(Int n, T* a, const Int* pivots, T* work, Int lwork) {                                               \
    return info_of([&](Int* info) { t##getri_(&n, a, &n, pivots, work, &lwork, info); });                              \
  }                                                                                                                    \
  inline Int getrs(Int n, Int count, const T* a, const Int* pivots, T* b) {                                            \
    const char plain = 'N';                                                                                            \
    return info_of([&](Int* info) { t##getrs_(&plain, &n, &count, a, &n, pivots, b, &n, info, 1); });                  \
  }                                                                                                                    \
  inline Int gelqf(Int m, Int n, T* a, T* tau, T* work, Int lwork) {                                                   \
    return info_of([&](Int* info) { t##gelqf_(&m, &n, a, &m, tau, work, &lwork, info); });                             \
  }                                                                                                                    \
  /* The first m rows, of n, of the unitary matrix that k reflectors make. */                                          \
  inline Int unglq(Int m, Int n, Int k, T* a, const T* tau, T* work, Int lwork) {                                      \
    return info_of([&](Int* info) { orthogonal##glq_(&m, &n, &k, a, &m, tau, work, &lwork, info); });                  \
  }
BP_LAPACK_ROUTINES(float, s, sor)
BP_LAPACK_ROUTINES(double, d, dor)
BP_LAPACK_ROUTINES(Complex64, c, cun)
BP_LAPACK_ROUTINES(Complex128, z, zun)
#undef BP_LAPACK_ROUTINES

// Singular values, eigenvalues: the complex routines take a real work array, the real ones do not use it here.
#define BP_LAPACK_REAL(T, t)                                                                                        \
  extern "C" {                                                                                                      \
  void t##gesdd_(const char*, const Int*, const Int*, T*, const Int*, T*, T*, const Int*, T*, const Int*, T*,       \
                 const Int*, Int*, Int*, size_t);                                                                   \
  void t##syevd_(const char*, const char*, const Int*, T*, const Int*, T*, T*, const Int*, Int*, const Int*, Int*,  \
                 size_t, size_t);                                                                                   \
  void t##geev_(const char*, const char*, const Int*, T*, const Int*, T*, T*, T*, const Int*, T*, const Int*, T*,   \
                const Int*, Int*, size_t, size_t);                                                                  \
  }                                                                                                                 \
  inline Int gesdd(char job, Int m, Int n, T* a, T* s, T* u, T* vt, Int ldvt, T* work, Int lwork, T*, Int* iwork) { \
    return info_of(                                                                                                 \
        [&](Int* info) { t##gesdd_(&job, &m, &n, a, &m, s, u, &m, vt, &ldvt, work, &lwork, iwork, info, 1); });     \
  }                                                                                                                 \
  inline Int heevd(char job, Int n, T* a, T* w, T* work, Int lwork, T*, Int, Int* iwork, Int liwork) {              \
    const char uplo = 'L';                                                                                          \
    return info_of(                                                                                                 \
        [&](Int* info) { t##syevd_(&job, &uplo, &n, a, &n, w, work, &lwork, iwork, &liwork, info, 1, 1); });        \
  }                                                                                                                 \
  /* `w`: n real parts, then n imaginary parts; eigenvectors as LAPACK packs them. */                               \
  inline Int geev(char job, Int n, T* a, T* w, T* v, T* work, Int lwork, T*) {                                      \
    const char left = 'N';                                                                                          \
    const Int one = 1;                                                                                              \
    return info_of([&](Int* info) {                                                                                 \
      t##geev_(&left, &job, &n, a, &n, w, w + n, nullptr, &one, v, &n, work, &lwork, info, 1, 1);                   \
    });                                                                                                             \
  }
BP_LAPACK_REAL(float, s)
BP_LAPACK_REAL(double, d)
#undef BP_LAPACK_REAL

#define BP_LAPACK_COMPLEX(T, R, t)                                                                                     \
  extern "C" {                                                                                                         \
  void t##gesdd_(const char*, const Int*, const Int*, T*, const Int*, R*, T*, const Int*, T*, const Int*, T*,          \
                 const Int*, R*, Int*, Int*, size_t);                                                                  \
  void t##heevd_(const char*, const char*, const Int*, T*, const Int*, R*, T*, const Int*, R*, const Int*, Int*,       \
                 const Int*, Int*, size_t, size_t);                                                                    \
  void t##geev_(const char*, const char*, const Int*, T*, const Int*, T*, T*, const Int*, T*, const Int*, T*,          \
                const Int*, R*, Int*, size_t, size_t);                                                                 \
  }                                                                                                                    \
  inline Int gesdd(char job, Int m, Int n, T* a, R* s, T* u, T* vt, Int ldvt, T* work, Int lwork, R* rwork,            \
                   Int* iwork) {                                                                                       \
    return info_of(                                                                                                    \
        [&](Int* info) { t##gesdd_(&job, &m, &n, a, &m, s, u, &m, vt, &ldvt, work, &lwork, rwork, iwork, info, 1); }); \
  }                                                                                                                    \
  inline Int heevd(char job, Int n, T* a, R* w, T* work, Int lwork, R* rwork, Int lrwork, Int* iwork, Int liwork) {    \
    const char uplo = 'L';                                                                                             \
    return info_of([&](Int* info) {                                                                                    \
      t##heevd_(&job, &uplo, &n, a, &n, w, work, &lwork, rwork, &lrwork, iwork, &liwork, info, 1, 1);                  \
    });                                                                                                                \
  }                                                                                                                    \
  inline Int geev(char job, Int n, T* a, T* w, T* v, T* work, Int lwork, R* rwork) {                                   \
    const char left = 'N';                                                                                             \
    const Int one = 1;                                                                                                 \
    return info_of([&](Int* info) {                                                                                    \
      t##geev_(&left, &job, &n, a, &n, w, nullptr, &one, v, &n, work, &lwork, rwork, info, 1, 1);                      \
    });                                                                                                                \
  }
BP_LAPACK_COMPLEX(Complex64, float, c)
BP_LAPACK_COMPLEX(Complex128, double, z)
#undef BP_LAPACK_COMPLEX

}  // namespace backplane::cpu::lapack
