// cuSOLVER as this backend uses it: declarations of our own, and a table that is filled when a factorisation first
// needs it. `./dev check cuda` holds every line here against NVIDIA's header.
//
// Where there is one, the function for all types, with sizes of 64 bits: one row in the place of four.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "driver/driver.hpp"
#include "libraries/library.hpp"

namespace backplane::cuda {

namespace cusolver {

using Status = int;
struct HandleData;
using Handle = HandleData*;
struct ParametersData;
using Parameters = ParametersData*;
struct Complex64;  // a pair of floats
struct Complex128;

enum : Status { kSuccess = 0, kAllocFailed = 2, kInvalidValue = 3, kExecutionFailed = 6, kNotSupported = 9 };
enum DataType : int { kReal32 = 0, kReal64 = 1, kComplex32 = 4, kComplex64 = 5 };  // of a number's parts
enum Fill : int { kLower = 0, kUpper = 1 };
enum Operation : int { kAsStored = 0, kTransposed = 1 };
enum Vectors : int { kNoVectors = 0, kVectors = 1 };

}  // namespace cusolver

#define BP_CUSOLVER_WORK cusolver::DataType computed, void *work, size_t work_bytes, void *host_work, size_t host_bytes
#define BP_CUSOLVER_SIZES cusolver::DataType computed, size_t *work_bytes, size_t *host_bytes
#define BP_CUSOLVER_HEAD cusolver::Handle handle, cusolver::Parameters parameters
// The columns of a unitary matrix that k reflectors make: `name` of the type T.
#define BP_CUSOLVER_COLUMNS(X, name, T)                                                                    \
  X(cusolver::Status, name##_bufferSize,                                                                   \
    (cusolver::Handle handle, int m, int n, int k, const T* a, int lda, const T* tau, int* work_elements)) \
  X(cusolver::Status, name,                                                                                \
    (cusolver::Handle handle, int m, int n, int k, T* a, int lda, const T* tau, T* work, int elements, int* info))

// X(result, name, parameters).
#define BP_CUSOLVER(X)                                                                                                \
  X(cusolver::Status, cusolverGetVersion, (int* version))                                                             \
  X(cusolver::Status, cusolverDnCreate, (cusolver::Handle * handle))                                                  \
  X(cusolver::Status, cusolverDnDestroy, (cusolver::Handle handle))                                                   \
  X(cusolver::Status, cusolverDnSetStream, (cusolver::Handle handle, driver::Stream stream))                          \
  X(cusolver::Status, cusolverDnCreateParams, (cusolver::Parameters * parameters))                                    \
  X(cusolver::Status, cusolverDnDestroyParams, (cusolver::Parameters parameters))                                     \
  X(cusolver::Status, cusolverDnXpotrf_bufferSize,                                                                    \
    (BP_CUSOLVER_HEAD, cusolver::Fill fill, int64_t n, cusolver::DataType type, const void* a, int64_t lda,           \
     BP_CUSOLVER_SIZES))                                                                                              \
  X(cusolver::Status, cusolverDnXpotrf,                                                                               \
    (BP_CUSOLVER_HEAD, cusolver::Fill fill, int64_t n, cusolver::DataType type, void* a, int64_t lda,                 \
     BP_CUSOLVER_WORK, int* info))                                                                                    \
  X(cusolver::Status, cusolverDnXgetrf_bufferSize,                                                                    \
    (BP_CUSOLVER_HEAD, int64_t m, int64_t n, cusolver::DataType type, const void* a, int64_t lda, BP_CUSOLVER_SIZES)) \
  X(cusolver::Status, cusolverDnXgetrf,                                                                               \
    (BP_CUSOLVER_HEAD, int64_t m, int64_t n, cusolver::DataType type, void* a, int64_t lda, int64_t* pivots,          \
     BP_CUSOLVER_WORK, int* info))                                                                                    \
  X(cusolver::Status, cusolverDnXgetrs,                                                                               \
    (BP_CUSOLVER_HEAD, cusolver::Operation operation, int64_t n, int64_t columns, cusolver::DataType type,            \
     const void* a, int64_t lda, const int64_t* pivots, cusolver::DataType b_type, void* b, int64_t ldb, int* info))  \
  X(cusolver::Status, cusolverDnXgeqrf_bufferSize,                                                                    \
    (BP_CUSOLVER_HEAD, int64_t m, int64_t n, cusolver::DataType type, const void* a, int64_t lda,                     \
     cusolver::DataType tau_type, const void* tau, BP_CUSOLVER_SIZES))                                                \
  X(cusolver::Status, cusolverDnXgeqrf,                                                                               \
    (BP_CUSOLVER_HEAD, int64_t m, int64_t n, cusolver::DataType type, void* a, int64_t lda,                           \
     cusolver::DataType tau_type, void* tau, BP_CUSOLVER_WORK, int* info))                                            \
  X(cusolver::Status, cusolverDnXsyevd_bufferSize,                                                                    \
    (BP_CUSOLVER_HEAD, cusolver::Vectors vectors, cusolver::Fill fill, int64_t n, cusolver::DataType type,            \
     const void* a, int64_t lda, cusolver::DataType w_type, const void* w, BP_CUSOLVER_SIZES))                        \
  X(cusolver::Status, cusolverDnXsyevd,                                                                               \
    (BP_CUSOLVER_HEAD, cusolver::Vectors vectors, cusolver::Fill fill, int64_t n, cusolver::DataType type, void* a,   \
     int64_t lda, cusolver::DataType w_type, void* w, BP_CUSOLVER_WORK, int* info))                                   \
  X(cusolver::Status, cusolverDnXgesvd_bufferSize,                                                                    \
    (BP_CUSOLVER_HEAD, signed char u_job, signed char v_job, int64_t m, int64_t n, cusolver::DataType type,           \
     const void* a, int64_t lda, cusolver::DataType s_type, const void* s, cusolver::DataType u_type, const void* u,  \
     int64_t ldu, cusolver::DataType v_type, const void* v, int64_t ldv, BP_CUSOLVER_SIZES))                          \
  X(cusolver::Status, cusolverDnXgesvd,                                                                               \
    (BP_CUSOLVER_HEAD, signed char u_job, signed char v_job, int64_t m, int64_t n, cusolver::DataType type, void* a,  \
     int64_t lda, cusolver::DataType s_type, void* s, cusolver::DataType u_type, void* u, int64_t ldu,                \
     cusolver::DataType v_type, void* v, int64_t ldv, BP_CUSOLVER_WORK, int* info))                                   \
  BP_CUSOLVER_COLUMNS(X, cusolverDnSorgqr, float)                                                                     \
  BP_CUSOLVER_COLUMNS(X, cusolverDnDorgqr, double)                                                                    \
  BP_CUSOLVER_COLUMNS(X, cusolverDnCungqr, cusolver::Complex64)                                                       \
  BP_CUSOLVER_COLUMNS(X, cusolverDnZungqr, cusolver::Complex128)

namespace cusolver {
struct Functions {
  BP_CUSOLVER(BP_CUDA_LIBRARY_MEMBER)
};
}  // namespace cusolver

// Opened at the first call. nullptr without the library; `reason` states why. Any thread.
const cusolver::Functions* find_cusolver(std::string* reason = nullptr);

}  // namespace backplane::cuda
