// cuDNN's convolutions as this backend uses them: declarations of our own, and a table that is filled when a
// convolution first needs it. `./dev check cuda` holds every line here against NVIDIA's header.
#pragma once

#include <cstddef>
#include <string>

#include "driver/driver.hpp"
#include "libraries/library.hpp"

namespace backplane::cuda {

namespace cudnn {

using Status = int;
using Handle = struct HandleData*;
// Descriptors, made and freed by the library.
using Tensor = struct TensorData*;
using Filter = struct FilterData*;
using Convolution = struct ConvolutionData*;

// Statuses of a kind begin with the same thousands.
enum : Status { kSuccess = 0, kBadParameter = 2000, kNotSupported = 3000, kExecutionFailed = 5000 };
enum : int { kReal32 = 0, kReal64 = 1, kReal16 = 2, kBrain16 = 9 };
enum : int { kChannelsFirst = 0 };
enum : int { kCrossCorrelation = 1 };
// How products are made: kOfDefault may round float32 to TF32, kOfTensors goes to tensor cores, kOfConversion rounds to
// half floats for that, kOfFused is fused multiply-adds of the dtype itself.
enum : int { kOfDefault = 0, kOfTensors = 1, kOfConversion = 2, kOfFused = 3 };
enum : int { kDeterministic = 1 };

// An algorithm as the library proposes it, of any of the three passes.
struct Proposal {
  int algorithm;
  Status status;
  float time;
  size_t workspace;
  int determinism;
  int math;
  int reserved[3];
};

}  // namespace cudnn

// X(result, name, parameters).
#define BP_CUDNN_MAKES(X, what, Made)                                         \
  X(cudnn::Status, cudnnCreate##what##Descriptor, (cudnn::Made * descriptor)) \
  X(cudnn::Status, cudnnDestroy##what##Descriptor, (cudnn::Made descriptor))
#define BP_CUDNN_CHOOSES(X, name, First, Second, Third)                                              \
  X(cudnn::Status, name,                                                                             \
    (cudnn::Handle handle, cudnn::First first, cudnn::Second second, cudnn::Convolution convolution, \
     cudnn::Third result, int wanted, int* found, cudnn::Proposal* proposals))
#define BP_CUDNN_MEASURES(X, name, First, Second, Third)                                             \
  X(cudnn::Status, name,                                                                             \
    (cudnn::Handle handle, cudnn::First first, cudnn::Second second, cudnn::Convolution convolution, \
     cudnn::Third result, int algorithm, size_t* bytes))
#define BP_CUDNN_RUNS(X, name, First, Second, Third)                                                                  \
  X(cudnn::Status, name,                                                                                              \
    (cudnn::Handle handle, const void* alpha, cudnn::First first_layout, const void* first,                           \
     cudnn::Second second_layout, const void* second, cudnn::Convolution convolution, int algorithm, void* workspace, \
     size_t workspace_bytes, const void* beta, cudnn::Third result_layout, void* result))
#define BP_CUDNN(X)                                                                                            \
  X(size_t, cudnnGetVersion, (void))                                                                           \
  X(const char*, cudnnGetErrorString, (cudnn::Status status))                                                  \
  X(cudnn::Status, cudnnCreate, (cudnn::Handle * handle))                                                      \
  X(cudnn::Status, cudnnDestroy, (cudnn::Handle handle))                                                       \
  X(cudnn::Status, cudnnSetStream, (cudnn::Handle handle, driver::Stream stream))                              \
  BP_CUDNN_MAKES(X, Tensor, Tensor)                                                                            \
  BP_CUDNN_MAKES(X, Filter, Filter)                                                                            \
  BP_CUDNN_MAKES(X, Convolution, Convolution)                                                                  \
  X(cudnn::Status, cudnnSetTensor4dDescriptor,                                                                 \
    (cudnn::Tensor tensor, int format, int type, int images, int channels, int height, int width))             \
  X(cudnn::Status, cudnnSetFilter4dDescriptor,                                                                 \
    (cudnn::Filter filter, int type, int format, int filters, int channels, int height, int width))            \
  X(cudnn::Status, cudnnSetConvolution2dDescriptor,                                                            \
    (cudnn::Convolution convolution, int down_padding, int across_padding, int down_stride, int across_stride, \
     int down_dilation, int across_dilation, int mode, int computed))                                          \
  X(cudnn::Status, cudnnSetConvolutionGroupCount, (cudnn::Convolution convolution, int groups))                \
  X(cudnn::Status, cudnnSetConvolutionMathType, (cudnn::Convolution convolution, int math))                    \
  BP_CUDNN_CHOOSES(X, cudnnGetConvolutionForwardAlgorithm_v7, Tensor, Filter, Tensor)                          \
  BP_CUDNN_CHOOSES(X, cudnnGetConvolutionBackwardDataAlgorithm_v7, Filter, Tensor, Tensor)                     \
  BP_CUDNN_CHOOSES(X, cudnnGetConvolutionBackwardFilterAlgorithm_v7, Tensor, Tensor, Filter)                   \
  BP_CUDNN_MEASURES(X, cudnnGetConvolutionForwardWorkspaceSize, Tensor, Filter, Tensor)                        \
  BP_CUDNN_MEASURES(X, cudnnGetConvolutionBackwardDataWorkspaceSize, Filter, Tensor, Tensor)                   \
  BP_CUDNN_MEASURES(X, cudnnGetConvolutionBackwardFilterWorkspaceSize, Tensor, Tensor, Filter)                 \
  BP_CUDNN_RUNS(X, cudnnConvolutionForward, Tensor, Filter, Tensor)                                            \
  BP_CUDNN_RUNS(X, cudnnConvolutionBackwardData, Filter, Tensor, Tensor)                                       \
  BP_CUDNN_RUNS(X, cudnnConvolutionBackwardFilter, Tensor, Tensor, Filter)

namespace cudnn {
struct Functions {
  BP_CUDNN(BP_CUDA_LIBRARY_MEMBER)
};
}  // namespace cudnn

// Opened at the first call. nullptr without the library; `reason` states why. Any thread.
const cudnn::Functions* find_cudnn(std::string* reason = nullptr);

}  // namespace backplane::cuda
