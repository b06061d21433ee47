// NVIDIA's driver as this plugin uses it: declarations of our own, and a table that is filled when a device is first
// asked for. Nothing of NVIDIA's is linked, so that the plugin loads everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace minimal {

using CudaResult = int;
using CudaAddress = unsigned long long;  // of device memory
using CudaHandle = void*;                // of a context, a module, a function, a stream or an event

// X(name, parameters): each returns a CudaResult. The suffixes name the driver's current versions.
#define MINIMAL_DRIVER(X)                                                                                        \
  X(cuInit, (unsigned flags))                                                                                    \
  X(cuGetErrorName, (CudaResult error, const char** text))                                                       \
  X(cuDeviceGetCount, (int* count))                                                                              \
  X(cuDeviceGet, (int* device, int ordinal))                                                                     \
  X(cuDeviceGetName, (char* name, int length, int device))                                                       \
  X(cuDeviceTotalMem_v2, (size_t * bytes, int device))                                                           \
  X(cuDevicePrimaryCtxRetain, (CudaHandle * context, int device))                                                \
  X(cuDevicePrimaryCtxRelease_v2, (int device))                                                                  \
  X(cuCtxPushCurrent_v2, (CudaHandle context))                                                                   \
  X(cuCtxPopCurrent_v2, (CudaHandle * context))                                                                  \
  X(cuModuleLoadData, (CudaHandle * module, const void* image))                                                  \
  X(cuModuleUnload, (CudaHandle module))                                                                         \
  X(cuModuleGetFunction, (CudaHandle * function, CudaHandle module, const char* name))                           \
  X(cuLaunchKernel,                                                                                              \
    (CudaHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, CudaHandle stream, void** parameters, void** extra))               \
  X(cuMemAlloc_v2, (CudaAddress * address, size_t bytes))                                                        \
  X(cuMemFree_v2, (CudaAddress address))                                                                         \
  X(cuMemHostAlloc, (void** address, size_t bytes, unsigned flags))                                              \
  X(cuMemFreeHost, (void* address))                                                                              \
  X(cuMemHostGetDevicePointer_v2, (CudaAddress * address, void* host, unsigned flags))                           \
  X(cuMemcpyHtoDAsync_v2, (CudaAddress to, const void* from, size_t bytes, CudaHandle stream))                   \
  X(cuMemcpyDtoHAsync_v2, (void* to, CudaAddress from, size_t bytes, CudaHandle stream))                         \
  X(cuMemcpyDtoDAsync_v2, (CudaAddress to, CudaAddress from, size_t bytes, CudaHandle stream))                   \
  X(cuStreamCreate, (CudaHandle * stream, unsigned flags))                                                       \
  X(cuStreamDestroy_v2, (CudaHandle stream))                                                                     \
  X(cuStreamSynchronize, (CudaHandle stream))                                                                    \
  X(cuStreamWaitEvent, (CudaHandle stream, CudaHandle event, unsigned flags))                                    \
  X(cuEventCreate, (CudaHandle * event, unsigned flags))                                                         \
  X(cuEventRecord, (CudaHandle event, CudaHandle stream))                                                        \
  X(cuEventQuery, (CudaHandle event))                                                                            \
  X(cuEventSynchronize, (CudaHandle event))                                                                      \
  X(cuEventDestroy_v2, (CudaHandle event))

struct Driver {
#define MINIMAL_MEMBER(name, parameters) CudaResult(*name) parameters = nullptr;
  MINIMAL_DRIVER(MINIMAL_MEMBER)
#undef MINIMAL_MEMBER
};

constexpr CudaResult kNotReady = 600;

// Opened and started at the first call, never closed; throws Error(BP_ERROR_DEVICE) without a driver.
const Driver& driver();

// Throws unless the call succeeded: BP_ERROR_MEMORY, BP_ERROR_DEVICE_LOST for errors that CUDA keeps for the life of
// the process, else BP_ERROR_DEVICE.
void check(CudaResult result, const char* call);

}  // namespace minimal
