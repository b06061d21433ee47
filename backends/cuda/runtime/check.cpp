// Which of CUDA's errors are fatal; see check.hpp.
#include "runtime/check.hpp"

namespace backplane::cuda {

bp_status code_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return BP_OK;
    case cudaErrorMemoryAllocation:
      return BP_ERROR_MEMORY;
    // "The process must be terminated and relaunched" (CUDA Runtime API, cudaError).
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorMisalignedAddress:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorUnknown:
      return BP_ERROR_DEVICE_LOST;
    default:
      return BP_ERROR_DEVICE;
  }
}

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // an error that is not fatal must not come back from the next launch's check
  ::backplane::detail::fail(code_of(error), "cuda: ", call, ": ", cudaGetErrorName(error), ": ",
                            cudaGetErrorString(error));
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const bp_status code = status == CUBLAS_STATUS_ALLOC_FAILED ? BP_ERROR_MEMORY : BP_ERROR_DEVICE;
  ::backplane::detail::fail(code, "cuda: ", call, ": ", cublasGetStatusName(status), ": ",
                            cublasGetStatusString(status));
}

}  // namespace backplane::cuda
