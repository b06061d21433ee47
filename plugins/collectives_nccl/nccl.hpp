// NCCL as this provider uses it: declarations of our own, and a table that is filled when a program asks for it.
// `./dev check cuda` holds every line here against NVIDIA's header.
#pragma once

#include <cstddef>
#include <string>

struct ncclComm;
struct CUstream_st;
struct CUctx_st;

namespace backplane::nccl {

using Result = int;
using Comm = ncclComm*;
using Stream = CUstream_st*;
struct UniqueId {
  char internal[128];
};

enum : Result { kSuccess = 0, kInvalidArgument = 4, kInvalidUsage = 5, kInProgress = 7 };
enum Op : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };
enum Type : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9
};

// X(result, name, parameters).
#define BP_NCCL(X)                                                                                                 \
  X(nccl::Result, ncclGetVersion, (int* version))                                                                  \
  X(nccl::Result, ncclGetUniqueId, (nccl::UniqueId * id))                                                          \
  X(nccl::Result, ncclCommInitRank, (nccl::Comm * comm, int size, nccl::UniqueId id, int rank))                    \
  X(nccl::Result, ncclCommDestroy, (nccl::Comm comm))                                                              \
  X(nccl::Result, ncclCommGetAsyncError, (nccl::Comm comm, nccl::Result * error))                                  \
  X(const char*, ncclGetErrorString, (nccl::Result result))                                                        \
  X(const char*, ncclGetLastError, (nccl::Comm comm))                                                              \
  X(nccl::Result, ncclGroupStart, ())                                                                              \
  X(nccl::Result, ncclGroupEnd, ())                                                                                \
  X(nccl::Result, ncclAllReduce,                                                                                   \
    (const void* in, void* out, size_t count, nccl::Type type, nccl::Op op, nccl::Comm comm, nccl::Stream stream)) \
  X(nccl::Result, ncclReduce,                                                                                      \
    (const void* in, void* out, size_t count, nccl::Type type, nccl::Op op, int root, nccl::Comm comm,             \
     nccl::Stream stream))                                                                                         \
  X(nccl::Result, ncclReduceScatter,                                                                               \
    (const void* in, void* out, size_t count, nccl::Type type, nccl::Op op, nccl::Comm comm, nccl::Stream stream)) \
  X(nccl::Result, ncclAllGather,                                                                                   \
    (const void* in, void* out, size_t count, nccl::Type type, nccl::Comm comm, nccl::Stream stream))              \
  X(nccl::Result, ncclBroadcast,                                                                                   \
    (const void* in, void* out, size_t count, nccl::Type type, int root, nccl::Comm comm, nccl::Stream stream))    \
  X(nccl::Result, ncclSend,                                                                                        \
    (const void* in, size_t count, nccl::Type type, int peer, nccl::Comm comm, nccl::Stream stream))               \
  X(nccl::Result, ncclRecv, (void* out, size_t count, nccl::Type type, int peer, nccl::Comm comm, nccl::Stream stream))

// Of the driver: NCCL works on the device whose context is current.
#define BP_NCCL_DRIVER(X)                           \
  X(int, cuCtxPushCurrent_v2, (CUctx_st * context)) \
  X(int, cuCtxPopCurrent_v2, (CUctx_st * *context)) \
  X(int, cuMemsetD8Async, (unsigned long long to, unsigned char value, size_t bytes, CUstream_st* stream))

#define BP_NCCL_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
struct Functions {
  BP_NCCL(BP_NCCL_MEMBER)
  BP_NCCL_DRIVER(BP_NCCL_MEMBER)
};
#undef BP_NCCL_MEMBER

// nullptr: NCCL is not there, for the reason. Opened at the first call, until the process ends. Any thread.
const Functions* find(std::string* reason);

}  // namespace backplane::nccl
