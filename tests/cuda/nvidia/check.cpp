// Our declarations of CUDA's libraries against NVIDIA's headers, when this is compiled; and, when it runs, whether the
// libraries on LD_LIBRARY_PATH have what our tables ask for. `./dev check cuda` does both; neither needs a GPU.
#include <cublasLt.h>
#include <cudnn.h>
#include <cufft.h>
#include <cusolverDn.h>
#include <dlfcn.h>
#include <nccl.h>
#include <nvrtc.h>

#include <cstddef>
#include <cstdio>

#include "declarations.hpp"
#include "libraries/cublaslt.hpp"
#include "libraries/cudnn.hpp"
#include "libraries/cufft.hpp"
#include "libraries/cusolver.hpp"
#include "libraries/nvrtc.hpp"
#include "nccl.hpp"

namespace {

using emulator::same_form;
using namespace backplane::cuda;

#define BACKPLANE_SAME_FORM(result, name, parameters) \
  static_assert(same_form(static_cast<result(*) parameters>(nullptr), static_cast<decltype(&::name)>(nullptr)), #name);
#define BACKPLANE_SAME_VALUE(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs), #theirs);

BP_CUBLASLT(BACKPLANE_SAME_FORM)
static_assert(CUBLAS_VER_MAJOR == 13);  // as in the library's file name
BACKPLANE_SAME_VALUE(cublaslt::kSuccess, CUBLAS_STATUS_SUCCESS)
BACKPLANE_SAME_VALUE(cublaslt::kAllocFailed, CUBLAS_STATUS_ALLOC_FAILED)
BACKPLANE_SAME_VALUE(cublaslt::kInvalidValue, CUBLAS_STATUS_INVALID_VALUE)
BACKPLANE_SAME_VALUE(cublaslt::kExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED)
BACKPLANE_SAME_VALUE(cublaslt::kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED)
BACKPLANE_SAME_VALUE(cublaslt::kReal16, CUDA_R_16F)
BACKPLANE_SAME_VALUE(cublaslt::kBrain16, CUDA_R_16BF)
BACKPLANE_SAME_VALUE(cublaslt::kReal32, CUDA_R_32F)
BACKPLANE_SAME_VALUE(cublaslt::kReal64, CUDA_R_64F)
BACKPLANE_SAME_VALUE(cublaslt::kComplex32, CUDA_C_32F)
BACKPLANE_SAME_VALUE(cublaslt::kComplex64, CUDA_C_64F)
BACKPLANE_SAME_VALUE(cublaslt::kCompute32, CUBLAS_COMPUTE_32F)
BACKPLANE_SAME_VALUE(cublaslt::kCompute64, CUBLAS_COMPUTE_64F)
BACKPLANE_SAME_VALUE(cublaslt::kAsStored, CUBLAS_OP_N)
BACKPLANE_SAME_VALUE(cublaslt::kTransposed, CUBLAS_OP_T)
BACKPLANE_SAME_VALUE(cublaslt::kLayoutBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
BACKPLANE_SAME_VALUE(cublaslt::kLayoutBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
BACKPLANE_SAME_VALUE(cublaslt::kOperationTransposeA, CUBLASLT_MATMUL_DESC_TRANSA)
BACKPLANE_SAME_VALUE(cublaslt::kOperationTransposeB, CUBLASLT_MATMUL_DESC_TRANSB)
BACKPLANE_SAME_VALUE(cublaslt::kOperationEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE)
BACKPLANE_SAME_VALUE(cublaslt::kOperationBias, CUBLASLT_MATMUL_DESC_BIAS_POINTER)
BACKPLANE_SAME_VALUE(cublaslt::kOperationBiasType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)
BACKPLANE_SAME_VALUE(cublaslt::kEpilogueBias, CUBLASLT_EPILOGUE_BIAS)
BACKPLANE_SAME_VALUE(cublaslt::kPreferWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
BACKPLANE_SAME_VALUE(cublaslt::kPreferReductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
BACKPLANE_SAME_VALUE(cublaslt::kPreferAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
BACKPLANE_SAME_VALUE(cublaslt::kPreferAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)
BACKPLANE_SAME_VALUE(cublaslt::kPreferAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES)
BACKPLANE_SAME_VALUE(cublaslt::kPreferAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
BACKPLANE_SAME_VALUE(cublaslt::kReduceInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
static_assert(sizeof(cublaslt::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(cublaslt::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(cublaslt::Heuristic, algorithm) == offsetof(cublasLtMatmulHeuristicResult_t, algo));
static_assert(offsetof(cublaslt::Heuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(cublaslt::Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

BP_CUDNN(BACKPLANE_SAME_FORM)
static_assert(CUDNN_MAJOR == 9);  // as in the library's file name
BACKPLANE_SAME_VALUE(cudnn::kSuccess, CUDNN_STATUS_SUCCESS)
BACKPLANE_SAME_VALUE(cudnn::kBadParameter, CUDNN_STATUS_BAD_PARAM)
BACKPLANE_SAME_VALUE(cudnn::kNotSupported, CUDNN_STATUS_NOT_SUPPORTED)
BACKPLANE_SAME_VALUE(cudnn::kExecutionFailed, CUDNN_STATUS_EXECUTION_FAILED)
static_assert(CUDNN_STATUS_CATEGORY(CUDNN_STATUS_NOT_SUPPORTED_SHAPE) == CUDNN_STATUS_NOT_SUPPORTED);
BACKPLANE_SAME_VALUE(cudnn::kReal16, CUDNN_DATA_HALF)
BACKPLANE_SAME_VALUE(cudnn::kBrain16, CUDNN_DATA_BFLOAT16)
BACKPLANE_SAME_VALUE(cudnn::kReal32, CUDNN_DATA_FLOAT)
BACKPLANE_SAME_VALUE(cudnn::kReal64, CUDNN_DATA_DOUBLE)
BACKPLANE_SAME_VALUE(cudnn::kChannelsFirst, CUDNN_TENSOR_NCHW)
BACKPLANE_SAME_VALUE(cudnn::kCrossCorrelation, CUDNN_CROSS_CORRELATION)
BACKPLANE_SAME_VALUE(cudnn::kOfDefault, CUDNN_DEFAULT_MATH)
BACKPLANE_SAME_VALUE(cudnn::kOfTensors, CUDNN_TENSOR_OP_MATH)
BACKPLANE_SAME_VALUE(cudnn::kOfConversion, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION)
BACKPLANE_SAME_VALUE(cudnn::kOfFused, CUDNN_FMA_MATH)
BACKPLANE_SAME_VALUE(cudnn::kDeterministic, CUDNN_DETERMINISTIC)
static_assert(CUDNN_CONVOLUTION_FWD_ALGO_COUNT <= 8);  // as many proposals as a plan has room for
static_assert(CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT <= 8 && CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT <= 8);
template <class Theirs>
constexpr bool kSameProposal = sizeof(cudnn::Proposal) == sizeof(Theirs) &&
                               offsetof(cudnn::Proposal, algorithm) == offsetof(Theirs, algo) &&
                               offsetof(cudnn::Proposal, status) == offsetof(Theirs, status) &&
                               offsetof(cudnn::Proposal, workspace) == offsetof(Theirs, memory) &&
                               offsetof(cudnn::Proposal, determinism) == offsetof(Theirs, determinism) &&
                               offsetof(cudnn::Proposal, math) == offsetof(Theirs, mathType);
static_assert(kSameProposal<cudnnConvolutionFwdAlgoPerf_t> && kSameProposal<cudnnConvolutionBwdDataAlgoPerf_t> &&
              kSameProposal<cudnnConvolutionBwdFilterAlgoPerf_t>);

BP_CUFFT(BACKPLANE_SAME_FORM)
static_assert(CUFFT_VER_MAJOR == 12);  // as in the library's file name
BACKPLANE_SAME_VALUE(cufft::kSuccess, CUFFT_SUCCESS)
BACKPLANE_SAME_VALUE(cufft::kAllocFailed, CUFFT_ALLOC_FAILED)
BACKPLANE_SAME_VALUE(cufft::kInvalidValue, CUFFT_INVALID_VALUE)
BACKPLANE_SAME_VALUE(cufft::kExecFailed, CUFFT_EXEC_FAILED)
BACKPLANE_SAME_VALUE(cufft::kInvalidSize, CUFFT_INVALID_SIZE)
BACKPLANE_SAME_VALUE(cufft::kUnaligned, CUFFT_UNALIGNED_DATA)
BACKPLANE_SAME_VALUE(cufft::kComplex64, CUFFT_C2C)
BACKPLANE_SAME_VALUE(cufft::kComplex128, CUFFT_Z2Z)
BACKPLANE_SAME_VALUE(cufft::kReal32ToComplex, CUFFT_R2C)
BACKPLANE_SAME_VALUE(cufft::kReal64ToComplex, CUFFT_D2Z)
BACKPLANE_SAME_VALUE(cufft::kComplexToReal32, CUFFT_C2R)
BACKPLANE_SAME_VALUE(cufft::kComplexToReal64, CUFFT_Z2D)
BACKPLANE_SAME_VALUE(cufft::kForward, CUFFT_FORWARD)
BACKPLANE_SAME_VALUE(cufft::kInverse, CUFFT_INVERSE)

BP_CUSOLVER(BACKPLANE_SAME_FORM)
static_assert(CUSOLVER_VER_MAJOR == 12);  // as in the library's file name
BACKPLANE_SAME_VALUE(cusolver::kSuccess, CUSOLVER_STATUS_SUCCESS)
BACKPLANE_SAME_VALUE(cusolver::kAllocFailed, CUSOLVER_STATUS_ALLOC_FAILED)
BACKPLANE_SAME_VALUE(cusolver::kInvalidValue, CUSOLVER_STATUS_INVALID_VALUE)
BACKPLANE_SAME_VALUE(cusolver::kExecutionFailed, CUSOLVER_STATUS_EXECUTION_FAILED)
BACKPLANE_SAME_VALUE(cusolver::kNotSupported, CUSOLVER_STATUS_NOT_SUPPORTED)
BACKPLANE_SAME_VALUE(cusolver::kReal32, CUDA_R_32F)
BACKPLANE_SAME_VALUE(cusolver::kReal64, CUDA_R_64F)
BACKPLANE_SAME_VALUE(cusolver::kComplex32, CUDA_C_32F)
BACKPLANE_SAME_VALUE(cusolver::kComplex64, CUDA_C_64F)
BACKPLANE_SAME_VALUE(cusolver::kLower, CUBLAS_FILL_MODE_LOWER)
BACKPLANE_SAME_VALUE(cusolver::kUpper, CUBLAS_FILL_MODE_UPPER)
BACKPLANE_SAME_VALUE(cusolver::kAsStored, CUBLAS_OP_N)
BACKPLANE_SAME_VALUE(cusolver::kTransposed, CUBLAS_OP_T)
BACKPLANE_SAME_VALUE(cusolver::kNoVectors, CUSOLVER_EIG_MODE_NOVECTOR)
BACKPLANE_SAME_VALUE(cusolver::kVectors, CUSOLVER_EIG_MODE_VECTOR)

BP_NVRTC(BACKPLANE_SAME_FORM)
BACKPLANE_SAME_VALUE(nvrtc::kSuccess, NVRTC_SUCCESS)
BACKPLANE_SAME_VALUE(nvrtc::kCompilation, NVRTC_ERROR_COMPILATION)

using backplane::nccl::UniqueId;
namespace nccl = backplane::nccl;
BP_NCCL(BACKPLANE_SAME_FORM)
static_assert(NCCL_MAJOR == 2);  // as in the library's file name
static_assert(sizeof(UniqueId) == NCCL_UNIQUE_ID_BYTES);
BACKPLANE_SAME_VALUE(nccl::kSuccess, ncclSuccess)
BACKPLANE_SAME_VALUE(nccl::kInvalidArgument, ncclInvalidArgument)
BACKPLANE_SAME_VALUE(nccl::kInvalidUsage, ncclInvalidUsage)
BACKPLANE_SAME_VALUE(nccl::kInProgress, ncclInProgress)
BACKPLANE_SAME_VALUE(nccl::kSum, ncclSum)
BACKPLANE_SAME_VALUE(nccl::kProd, ncclProd)
BACKPLANE_SAME_VALUE(nccl::kMax, ncclMax)
BACKPLANE_SAME_VALUE(nccl::kMin, ncclMin)
BACKPLANE_SAME_VALUE(nccl::kAvg, ncclAvg)
BACKPLANE_SAME_VALUE(nccl::kInt8, ncclInt8)
BACKPLANE_SAME_VALUE(nccl::kUint8, ncclUint8)
BACKPLANE_SAME_VALUE(nccl::kInt32, ncclInt32)
BACKPLANE_SAME_VALUE(nccl::kUint32, ncclUint32)
BACKPLANE_SAME_VALUE(nccl::kInt64, ncclInt64)
BACKPLANE_SAME_VALUE(nccl::kUint64, ncclUint64)
BACKPLANE_SAME_VALUE(nccl::kFloat16, ncclFloat16)
BACKPLANE_SAME_VALUE(nccl::kBfloat16, ncclBfloat16)
BACKPLANE_SAME_VALUE(nccl::kFloat32, ncclFloat32)
BACKPLANE_SAME_VALUE(nccl::kFloat64, ncclFloat64)

struct Symbol {
  const char* name;
};
#define BACKPLANE_SYMBOL(result, name, parameters) {#name},
constexpr Symbol kCublaslt[] = {BP_CUBLASLT(BACKPLANE_SYMBOL)};
constexpr Symbol kCudnn[] = {BP_CUDNN(BACKPLANE_SYMBOL)};
constexpr Symbol kCufft[] = {BP_CUFFT(BACKPLANE_SYMBOL)};
constexpr Symbol kCusolver[] = {BP_CUSOLVER(BACKPLANE_SYMBOL)};
constexpr Symbol kNvrtc[] = {BP_NVRTC(BACKPLANE_SYMBOL)};
constexpr Symbol kNccl[] = {BP_NCCL(BACKPLANE_SYMBOL)};

template <size_t n>
bool has_all(const char* file, const Symbol (&symbols)[n]) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::printf("%s: %s\n", file, dlerror());
    return false;
  }
  bool good = true;
  for (const Symbol& symbol : symbols)
    if (!dlsym(library, symbol.name)) good = false, std::printf("%s lacks %s\n", file, symbol.name);
  if (good) std::printf("%s opens, and has all %zu functions\n", file, n);
  return good;
}

}  // namespace

int main() {
  bool good = has_all("libcublasLt.so.13", kCublaslt);
  good &= has_all("libcudnn.so.9", kCudnn);
  good &= has_all("libcufft.so.12", kCufft);
  good &= has_all("libcusolver.so.12", kCusolver);
  good &= has_all("libnvrtc.so.13", kNvrtc);
  good &= has_all("libnccl.so.2", kNccl);
  return good ? 0 : 1;
}
