// NVIDIA's driver as this backend uses it: declarations of our own, and a table that is filled when a device is first
// asked for. The plugin links nothing of NVIDIA's, so that it loads everywhere; tests/cuda checks every line here
// against NVIDIA's own header where that is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// NVIDIA's own names, so that handles can be passed on.
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace backplane::cuda {

namespace driver {

using Result = int;
using Device = int;
using Pointer = unsigned long long;  // of device memory
using Context = CUctx_st*;
using Module = CUmod_st*;
using Function = CUfunc_st*;
using Stream = CUstream_st*;
using Event = CUevent_st*;
using Graph = CUgraph_st*;
using Executable = CUgraphExec_st*;
using HostFunction = void (*)(void* argument);

enum : Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidPtx = 218,
  kUnsupportedPtx = 222,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchTimeout = 702,
  kPeerAccessAlreadyEnabled = 704,
  kMisalignedAddress = 716,
  kLaunchFailed = 719,
  kUnknown = 999
};
// Attributes of a device.
enum : int {
  kSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kMultiprocessors = 16,
  kIntegrated = 18,
  kCacheSize = 38,
  kUnifiedAddressing = 41,
  kMajor = 75,
  kMinor = 76,
  kManagedMemory = 83,
  kCooperativeLaunch = 95
};
enum : int { kCaptureGlobal = 0, kCaptureThreadLocal = 1, kCaptureRelaxed = 2 };
enum : unsigned {
  kStreamNonBlocking = 1,
  kEventBlockingSync = 1,
  kEventDisableTiming = 2,
  kHostAllocPortable = 1,
  kHostAllocDeviceMap = 2,
  kHostRegisterPortable = 1
};

}  // namespace driver

// X(name, parameters): each returns a driver::Result. The suffixes name the driver's current versions.
#define BP_CUDA_DRIVER(X)                                                                                              \
  X(cuInit, (unsigned flags))                                                                                          \
  X(cuDriverGetVersion, (int* version))                                                                                \
  X(cuGetErrorName, (driver::Result error, const char** text))                                                         \
  X(cuGetErrorString, (driver::Result error, const char** text))                                                       \
  X(cuDeviceGetCount, (int* count))                                                                                    \
  X(cuDeviceGet, (driver::Device * device, int ordinal))                                                               \
  X(cuDeviceGetName, (char* name, int length, driver::Device device))                                                  \
  X(cuDeviceTotalMem_v2, (size_t * bytes, driver::Device device))                                                      \
  X(cuDeviceGetAttribute, (int* value, int attribute, driver::Device device))                                          \
  X(cuDeviceGetPCIBusId, (char* text, int length, driver::Device device))                                              \
  X(cuDeviceCanAccessPeer, (int* yes, driver::Device device, driver::Device peer))                                     \
  X(cuDevicePrimaryCtxRetain, (driver::Context * context, driver::Device device))                                      \
  X(cuDevicePrimaryCtxRelease_v2, (driver::Device device))                                                             \
  X(cuDevicePrimaryCtxReset_v2, (driver::Device device))                                                               \
  X(cuCtxPushCurrent_v2, (driver::Context context))                                                                    \
  X(cuCtxPopCurrent_v2, (driver::Context * context))                                                                   \
  X(cuCtxGetStreamPriorityRange, (int* least, int* greatest))                                                          \
  X(cuCtxEnablePeerAccess, (driver::Context peer, unsigned flags))                                                     \
  X(cuModuleLoadData, (driver::Module * module, const void* image))                                                    \
  X(cuModuleUnload, (driver::Module module))                                                                           \
  X(cuModuleGetFunction, (driver::Function * function, driver::Module module, const char* name))                       \
  X(cuLaunchKernel,                                                                                                    \
    (driver::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, driver::Stream stream, void** parameters, void** extra))                 \
  X(cuMemAlloc_v2, (driver::Pointer * pointer, size_t bytes))                                                          \
  X(cuMemFree_v2, (driver::Pointer pointer))                                                                           \
  X(cuMemHostAlloc, (void** pointer, size_t bytes, unsigned flags))                                                    \
  X(cuMemFreeHost, (void* pointer))                                                                                    \
  X(cuMemHostGetDevicePointer_v2, (driver::Pointer * pointer, void* host, unsigned flags))                             \
  X(cuMemHostRegister_v2, (void* pointer, size_t bytes, unsigned flags))                                               \
  X(cuMemHostUnregister, (void* pointer))                                                                              \
  X(cuMemcpyHtoDAsync_v2, (driver::Pointer to, const void* from, size_t bytes, driver::Stream stream))                 \
  X(cuMemcpyDtoHAsync_v2, (void* to, driver::Pointer from, size_t bytes, driver::Stream stream))                       \
  X(cuMemcpyDtoDAsync_v2, (driver::Pointer to, driver::Pointer from, size_t bytes, driver::Stream stream))             \
  X(cuMemcpyPeerAsync, (driver::Pointer to, driver::Context to_context, driver::Pointer from,                          \
                        driver::Context from_context, size_t bytes, driver::Stream stream))                            \
  X(cuMemsetD8Async, (driver::Pointer to, unsigned char value, size_t bytes, driver::Stream stream))                   \
  X(cuStreamCreateWithPriority, (driver::Stream * stream, unsigned flags, int priority))                               \
  X(cuStreamGetCtx, (driver::Stream stream, driver::Context * context))                                                \
  X(cuLaunchHostFunc, (driver::Stream stream, driver::HostFunction function, void* argument))                          \
  X(cuStreamDestroy_v2, (driver::Stream stream))                                                                       \
  X(cuStreamQuery, (driver::Stream stream))                                                                            \
  X(cuStreamWaitEvent, (driver::Stream stream, driver::Event event, unsigned flags))                                   \
  X(cuEventCreate, (driver::Event * event, unsigned flags))                                                            \
  X(cuEventRecord, (driver::Event event, driver::Stream stream))                                                       \
  X(cuEventQuery, (driver::Event event))                                                                               \
  X(cuEventElapsedTime, (float* milliseconds, driver::Event start, driver::Event end))                                 \
  X(cuEventDestroy_v2, (driver::Event event))                                                                          \
  X(cuStreamBeginCapture_v2, (driver::Stream stream, int mode))                                                        \
  X(cuStreamEndCapture, (driver::Stream stream, driver::Graph * graph))                                                \
  X(cuGraphInstantiateWithFlags, (driver::Executable * executable, driver::Graph graph, unsigned long long flags))     \
  X(cuGraphLaunch, (driver::Executable executable, driver::Stream stream))                                             \
  X(cuGraphDestroy, (driver::Graph graph))                                                                             \
  X(cuGraphExecDestroy, (driver::Executable executable))

struct Driver {
#define BP_CUDA_MEMBER(name, parameters) driver::Result(*name) parameters = nullptr;
  BP_CUDA_DRIVER(BP_CUDA_MEMBER)
#undef BP_CUDA_MEMBER
};

// Opened and started at the first call. nullptr without a driver; `reason` states why.
const Driver* find_driver(std::string* reason);
// Throws backplane::Error without a driver.
const Driver& the_driver();

// Throws backplane::Error unless the call succeeded: DEVICE_LOST for errors that CUDA keeps as long as the context.
void check(driver::Result result, const char* call);

}  // namespace backplane::cuda
