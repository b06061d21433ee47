// cuFFT as this backend uses it: declarations of our own, and a table that is filled when a transform first needs it.
// `./dev check cuda` holds every line here against NVIDIA's header.
#pragma once

#include <cstddef>
#include <string>

#include "driver/driver.hpp"
#include "libraries/library.hpp"

namespace backplane::cuda {

namespace cufft {

using Status = int;
using Plan = int;
struct Complex64;  // a pair of floats
struct Complex128;

enum : Status { kSuccess = 0, kAllocFailed = 2, kInvalidValue = 4, kExecFailed = 6, kInvalidSize = 8, kUnaligned = 9 };
enum Type : int {
  kComplex64 = 0x29,
  kReal32ToComplex = 0x2a,
  kComplexToReal32 = 0x2c,
  kComplex128 = 0x69,
  kReal64ToComplex = 0x6a,
  kComplexToReal64 = 0x6c
};
enum : int { kForward = -1, kInverse = 1 };

}  // namespace cufft

// X(result, name, parameters).
#define BP_CUFFT(X)                                                                                                  \
  X(cufft::Status, cufftGetVersion, (int* version))                                                                  \
  X(cufft::Status, cufftCreate, (cufft::Plan * plan))                                                                \
  X(cufft::Status, cufftDestroy, (cufft::Plan plan))                                                                 \
  X(cufft::Status, cufftSetAutoAllocation, (cufft::Plan plan, int allocates))                                        \
  X(cufft::Status, cufftMakePlanMany64,                                                                              \
    (cufft::Plan plan, int rank, long long* sizes, long long* in_embed, long long in_stride, long long in_distance,  \
     long long* out_embed, long long out_stride, long long out_distance, cufft::Type type, long long batch,          \
     size_t* workspace))                                                                                             \
  X(cufft::Status, cufftSetWorkArea, (cufft::Plan plan, void* workspace))                                            \
  X(cufft::Status, cufftSetStream, (cufft::Plan plan, driver::Stream stream))                                        \
  X(cufft::Status, cufftExecC2C, (cufft::Plan plan, cufft::Complex64 * in, cufft::Complex64 * out, int direction))   \
  X(cufft::Status, cufftExecZ2Z, (cufft::Plan plan, cufft::Complex128 * in, cufft::Complex128 * out, int direction)) \
  X(cufft::Status, cufftExecR2C, (cufft::Plan plan, float* in, cufft::Complex64* out))                               \
  X(cufft::Status, cufftExecD2Z, (cufft::Plan plan, double* in, cufft::Complex128* out))                             \
  X(cufft::Status, cufftExecC2R, (cufft::Plan plan, cufft::Complex64 * in, float* out))                              \
  X(cufft::Status, cufftExecZ2D, (cufft::Plan plan, cufft::Complex128 * in, double* out))

namespace cufft {
struct Functions {
  BP_CUFFT(BP_CUDA_LIBRARY_MEMBER)
};
}  // namespace cufft

// Opened at the first call. nullptr without the library; `reason` states why. Any thread.
const cufft::Functions* find_cufft(std::string* reason = nullptr);

}  // namespace backplane::cuda
