// cuBLASLt as this backend uses it: declarations of our own, and a table that is filled when a product first needs it.
// `./dev check cuda` holds every line here against NVIDIA's header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "driver/driver.hpp"
#include "libraries/library.hpp"

// NVIDIA's own name, so that handles can be passed on.
struct cublasLtContext;

namespace backplane::cuda {

namespace cublaslt {

using Status = int;
using Handle = cublasLtContext*;
// Descriptors, made and freed by the library.
using Layout = struct LayoutData*;
using Operation = struct OperationData*;
using Preference = struct PreferenceData*;

enum : Status { kSuccess = 0, kAllocFailed = 3, kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15 };
// cudaDataType.
enum : int { kReal32 = 0, kReal64 = 1, kReal16 = 2, kComplex32 = 4, kComplex64 = 5, kBrain16 = 14 };
enum : int { kCompute32 = 68, kCompute64 = 70 };
enum : int { kAsStored = 0, kTransposed = 1 };
enum : int { kLayoutBatchCount = 5, kLayoutBatchStride = 6 };
enum : int {
  kOperationTransposeA = 3,
  kOperationTransposeB = 4,
  kOperationEpilogue = 7,
  kOperationBias = 8,
  kOperationBiasType = 26
};
enum : uint32_t { kEpilogueBias = 4 };
enum : int {
  kPreferWorkspace = 1,
  kPreferReductions = 3,
  kPreferAlignmentA = 5,
  kPreferAlignmentB = 6,
  kPreferAlignmentC = 7,
  kPreferAlignmentD = 8
};
enum : uint32_t { kReduceInComputeType = 2 };

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};

}  // namespace cublaslt

// X(result, name, parameters).
#define BP_CUBLASLT(X)                                                                                                \
  X(cublaslt::Status, cublasLtCreate, (cublaslt::Handle * handle))                                                    \
  X(cublaslt::Status, cublasLtDestroy, (cublaslt::Handle handle))                                                     \
  X(const char*, cublasLtGetStatusString, (cublaslt::Status status))                                                  \
  X(size_t, cublasLtGetVersion, (void))                                                                               \
  X(cublaslt::Status, cublasLtMatrixLayoutCreate,                                                                     \
    (cublaslt::Layout * layout, int type, uint64_t rows, uint64_t columns, int64_t leading))                          \
  X(cublaslt::Status, cublasLtMatrixLayoutDestroy, (cublaslt::Layout layout))                                         \
  X(cublaslt::Status, cublasLtMatrixLayoutSetAttribute,                                                               \
    (cublaslt::Layout layout, int attribute, const void* value, size_t bytes))                                        \
  X(cublaslt::Status, cublasLtMatmulDescCreate, (cublaslt::Operation * operation, int compute, int scale))            \
  X(cublaslt::Status, cublasLtMatmulDescDestroy, (cublaslt::Operation operation))                                     \
  X(cublaslt::Status, cublasLtMatmulDescSetAttribute,                                                                 \
    (cublaslt::Operation operation, int attribute, const void* value, size_t bytes))                                  \
  X(cublaslt::Status, cublasLtMatmulPreferenceCreate, (cublaslt::Preference * preference))                            \
  X(cublaslt::Status, cublasLtMatmulPreferenceDestroy, (cublaslt::Preference preference))                             \
  X(cublaslt::Status, cublasLtMatmulPreferenceSetAttribute,                                                           \
    (cublaslt::Preference preference, int attribute, const void* value, size_t bytes))                                \
  X(cublaslt::Status, cublasLtMatmulAlgoGetHeuristic,                                                                 \
    (cublaslt::Handle handle, cublaslt::Operation operation, cublaslt::Layout a, cublaslt::Layout b,                  \
     cublaslt::Layout c, cublaslt::Layout d, cublaslt::Preference preference, int wanted, cublaslt::Heuristic* found, \
     int* count))                                                                                                     \
  X(cublaslt::Status, cublasLtMatmul,                                                                                 \
    (cublaslt::Handle handle, cublaslt::Operation operation, const void* alpha, const void* a,                        \
     cublaslt::Layout a_layout, const void* b, cublaslt::Layout b_layout, const void* beta, const void* c,            \
     cublaslt::Layout c_layout, void* d, cublaslt::Layout d_layout, const cublaslt::Algorithm* algorithm,             \
     void* workspace, size_t workspace_bytes, driver::Stream stream))

namespace cublaslt {
struct Functions {
  BP_CUBLASLT(BP_CUDA_LIBRARY_MEMBER)
};
}  // namespace cublaslt

// Opened at the first call. nullptr without the library; `reason` states why. Any thread.
const cublaslt::Functions* find_cublaslt(std::string* reason = nullptr);

}  // namespace backplane::cuda
