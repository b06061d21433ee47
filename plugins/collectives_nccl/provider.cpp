// The provider of collectives between CUDA devices, over NCCL: each call is recorded on the stream of its operands.
#include "provider.h"

#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "nccl.hpp"

namespace backplane::collectives_nccl {
namespace {

thread_local std::string t_error;

struct NcclError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct DeviceGroup {
  nccl::Comm comm = nullptr;
  CUctx_st* context = nullptr;
  int32_t rank = 0, size = 1;
};

const nccl::Functions& functions() {
  std::string reason;
  const nccl::Functions* found = nccl::find(&reason);
  if (!found) throw NcclError(reason);
  return *found;
}

template <class F>
bp_status guarded(F f) noexcept {
  try {
    f();
    return BP_OK;
  } catch (const NcclError& error) {
    t_error = error.what();
    return BP_ERROR_DEVICE;
  } catch (const std::bad_alloc&) {
    t_error = "out of host memory";
    return BP_ERROR_MEMORY;
  }
}

void check(nccl::Result result, const char* call, nccl::Comm comm = nullptr) {
  if (result == nccl::kSuccess || result == nccl::kInProgress) return;
  const char* more = functions().ncclGetLastError(comm);
  std::string text = std::string(call) + ": " + functions().ncclGetErrorString(result);
  if (more && *more) text += std::string(" (") + more + ")";
  throw NcclError(text);
}

// The device's context is current within.
class OnDevice {
 public:
  explicit OnDevice(CUctx_st* context) {
    if (const int code = functions().cuCtxPushCurrent_v2(context))
      throw NcclError("cuCtxPushCurrent gave error " + std::to_string(code));
  }
  ~OnDevice() {
    CUctx_st* before = nullptr;
    functions().cuCtxPopCurrent_v2(&before);
  }
  OnDevice(const OnDevice&) = delete;
};

// -1: NCCL has no such type.
int type_of(uint32_t dtype) {
  switch (dtype) {
    case BP_INT8:
      return nccl::kInt8;
    case BP_UINT8:
      return nccl::kUint8;
    case BP_INT32:
      return nccl::kInt32;
    case BP_UINT32:
      return nccl::kUint32;
    case BP_INT64:
      return nccl::kInt64;
    case BP_UINT64:
      return nccl::kUint64;
    case BP_FLOAT16:
      return nccl::kFloat16;
    case BP_BFLOAT16:
      return nccl::kBfloat16;
    case BP_FLOAT32:
      return nccl::kFloat32;
    case BP_FLOAT64:
      return nccl::kFloat64;
    default:
      return -1;
  }
}

bool is_floating(uint32_t dtype) {
  return dtype == BP_FLOAT16 || dtype == BP_BFLOAT16 || dtype == BP_FLOAT32 || dtype == BP_FLOAT64;
}
bool is_complex(uint32_t dtype) { return dtype == BP_COMPLEX64 || dtype == BP_COMPLEX128; }

nccl::Op op_of(uint32_t reduce) {
  switch (reduce) {
    case BP_COLLECTIVE_PROD:
      return nccl::kProd;
    case BP_COLLECTIVE_MAX:
      return nccl::kMax;
    case BP_COLLECTIVE_MIN:
      return nccl::kMin;
    case BP_COLLECTIVE_MEAN:
      return nccl::kAvg;
    default:
      return nccl::kSum;
  }
}

// nullptr: the call is taken.
const char* refusal(const bp_collective_call& call) {
  // On one communicator a call that waits for its receiver holds up all later ones.
  if (call.kind == BP_COLLECTIVE_SEND || call.kind == BP_COLLECTIVE_RECV) return "send and recv go through the host";
  if (call.kind == BP_COLLECTIVE_BARRIER) return "a barrier moves no data";
  if (call.reduce == 0) return nullptr;
  if (is_complex(call.dtype))
    return call.reduce == BP_COLLECTIVE_SUM || call.reduce == BP_COLLECTIVE_MEAN
               ? nullptr
               : "NCCL does not multiply complex numbers";
  if (type_of(call.dtype) < 0) return "NCCL does not reduce this dtype";
  if (is_floating(call.dtype) && (call.reduce == BP_COLLECTIVE_MAX || call.reduce == BP_COLLECTIVE_MIN))
    return "NCCL's maximum and minimum leave NaN out";
  return nullptr;
}

// The operands of a call in NCCL's terms: a complex number is two real ones.
struct NcclOperands {
  explicit NcclOperands(const bp_collective_call& call)
      : in(static_cast<const char*>(call.in)), out(static_cast<char*>(call.out)), count(call.count) {
    if (is_complex(call.dtype)) count *= 2;
    type = call.dtype == BP_COMPLEX64    ? nccl::kFloat32
           : call.dtype == BP_COMPLEX128 ? nccl::kFloat64
                                         : static_cast<nccl::Type>(type_of(call.dtype));
    item = type == nccl::kInt8 || type == nccl::kUint8                               ? 1
           : type == nccl::kFloat16 || type == nccl::kBfloat16                       ? 2
           : type == nccl::kInt32 || type == nccl::kUint32 || type == nccl::kFloat32 ? 4
                                                                                     : 8;
  }
  const char* in;
  char* out;
  size_t count;
  size_t item;  // bytes
  nccl::Type type;
};

void clear(void* out, size_t bytes, nccl::Stream stream) {
  if (const int code = functions().cuMemsetD8Async(reinterpret_cast<unsigned long long>(out), 0, bytes, stream))
    throw NcclError("cuMemsetD8Async gave error " + std::to_string(code));
}

// Sends and receives that are one call. Every rank has at least one of them.
void exchange(const DeviceGroup& group, const bp_collective_call& call, nccl::Stream stream) {
  const auto& f = functions();
  const NcclOperands operands(call);
  const bool all = call.kind == BP_COLLECTIVE_ALL_TO_ALL, is_root = group.rank == call.peer;
  const bool sends_all = all || (call.kind == BP_COLLECTIVE_SCATTER && is_root);
  const bool receives_all = all || (call.kind == BP_COLLECTIVE_GATHER && is_root);
  if (call.kind == BP_COLLECTIVE_GATHER && !is_root)
    clear(operands.out, operands.count * static_cast<size_t>(group.size), stream);
  check(f.ncclGroupStart(), "ncclGroupStart");
  nccl::Result failed = nccl::kSuccess;
  const auto add = [&](nccl::Result result) { failed = failed != nccl::kSuccess ? failed : result; };
  for (int32_t other = 0; other < group.size; ++other) {
    const auto at = static_cast<size_t>(other) * operands.count;
    if (sends_all) add(f.ncclSend(operands.in + at, operands.count, nccl::kUint8, other, group.comm, stream));
    if (receives_all) add(f.ncclRecv(operands.out + at, operands.count, nccl::kUint8, other, group.comm, stream));
  }
  if (call.kind == BP_COLLECTIVE_GATHER)
    add(f.ncclSend(operands.in, operands.count, nccl::kUint8, call.peer, group.comm, stream));
  if (call.kind == BP_COLLECTIVE_SCATTER)
    add(f.ncclRecv(operands.out, operands.count, nccl::kUint8, call.peer, group.comm, stream));
  add(f.ncclGroupEnd());
  check(failed, "ncclSend and ncclRecv", group.comm);
}

void record(const DeviceGroup& group, const bp_collective_call& call, nccl::Stream stream) {
  const auto& f = functions();
  const NcclOperands m(call);
  const nccl::Op op = op_of(call.reduce);
  switch (call.kind) {
    case BP_COLLECTIVE_ALL_REDUCE:
      return check(f.ncclAllReduce(m.in, m.out, m.count, m.type, op, group.comm, stream), "ncclAllReduce", group.comm);
    case BP_COLLECTIVE_REDUCE:
      if (group.rank != call.peer) clear(m.out, m.count * m.item, stream);
      return check(f.ncclReduce(m.in, m.out, m.count, m.type, op, call.peer, group.comm, stream), "ncclReduce",
                   group.comm);
    case BP_COLLECTIVE_REDUCE_SCATTER:
      return check(f.ncclReduceScatter(m.in, m.out, m.count, m.type, op, group.comm, stream), "ncclReduceScatter",
                   group.comm);
    case BP_COLLECTIVE_ALL_GATHER:
      return check(f.ncclAllGather(m.in, m.out, m.count, m.type, group.comm, stream), "ncclAllGather", group.comm);
    case BP_COLLECTIVE_BROADCAST:
      return check(f.ncclBroadcast(m.in, m.out, m.count, m.type, call.peer, group.comm, stream), "ncclBroadcast",
                   group.comm);
    default:
      return exchange(group, call, stream);
  }
}

bp_status BP_CALL is_available() {
  return guarded([] { functions(); });
}

bp_status BP_CALL make_id(void* id) {
  return guarded([&] {
    nccl::UniqueId made;
    check(functions().ncclGetUniqueId(&made), "ncclGetUniqueId");
    std::memcpy(id, &made, sizeof made);
  });
}

bp_status BP_CALL open_group(const void* id, int32_t rank, int32_t size, void* device, void** group) {
  return guarded([&] {
    auto made = std::make_unique<DeviceGroup>();
    made->context = static_cast<CUctx_st*>(device);
    made->rank = rank;
    made->size = size;
    nccl::UniqueId known;
    std::memcpy(&known, id, sizeof known);
    const OnDevice on(made->context);
    check(functions().ncclCommInitRank(&made->comm, size, known, rank), "ncclCommInitRank");
    *group = made.release();
  });
}

bp_status BP_CALL supports(const bp_collective_call* call) {
  return guarded([&] {
    if (const char* reason = refusal(*call)) throw NcclError(reason);
  });
}

bp_status BP_CALL start(void* group, const bp_collective_call* call, void* stream) {
  return guarded([&] {
    const DeviceGroup& own = *static_cast<const DeviceGroup*>(group);
    const OnDevice on(own.context);
    record(own, *call, static_cast<nccl::Stream>(stream));
  });
}

bp_status BP_CALL check_group(void* group) {
  return guarded([&] {
    const DeviceGroup& own = *static_cast<const DeviceGroup*>(group);
    nccl::Result found = nccl::kSuccess;
    check(functions().ncclCommGetAsyncError(own.comm, &found), "ncclCommGetAsyncError", own.comm);
    check(found, "a call on the device", own.comm);
  });
}

bp_status BP_CALL close_group(void* group) {
  return guarded([&] {
    const std::unique_ptr<DeviceGroup> own(static_cast<DeviceGroup*>(group));
    const OnDevice on(own->context);
    check(functions().ncclCommDestroy(own->comm), "ncclCommDestroy");
  });
}

const char* BP_CALL last_error() { return t_error.c_str(); }

}  // namespace
}  // namespace backplane::collectives_nccl

extern "C" BP_EXPORT bp_status BP_CALL bp_collective_device_provider_query(uint32_t version,
                                                                           bp_collective_device_provider* out) {
  using namespace backplane::collectives_nccl;
  if (version < BP_COLLECTIVE_DEVICES_VERSION || out->header.struct_size < sizeof(bp_collective_device_provider))
    return BP_ERROR_VERSION;
  *out = {{sizeof(bp_collective_device_provider), BP_COLLECTIVE_DEVICES_VERSION},
          "NCCL",
          "CUcontext",
          "CUstream",
          sizeof(backplane::nccl::UniqueId),
          is_available,
          make_id,
          open_group,
          supports,
          start,
          check_group,
          close_group,
          last_error};
  return BP_OK;
}
