// Results of CUDA and cuBLAS calls as errors of the contract.
//
// Errors that CUDA keeps for the life of the process (a bad address in a kernel, say) lose the device; exhausted memory
// is BP_ERROR_MEMORY (the host then gives back what it caches and tries again); all else leaves the device usable.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "backplane/error.hpp"

namespace backplane::cuda {

bp_status code_of(cudaError_t error);

// Throws backplane::Error naming the call.
void check(cudaError_t error, const char* call);
void check(cublasStatus_t status, const char* call);

}  // namespace backplane::cuda
