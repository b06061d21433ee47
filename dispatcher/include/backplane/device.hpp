// Devices, moving data, and exchange with other libraries (DLPack). Functions throw Error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backplane/abi/backend.h"
#include "backplane/tensor.hpp"

namespace backplane {

struct DeviceInfo {
  bp_device device;
  std::string name;         // "cpu", "sim:1": the backend's name and, above 0, the ordinal
  std::string description;  // as the backend names it
  std::string plugin;
  bp_device_properties properties;
};

// "cpu", "sim:1". Opens the plugin whose manifest names the backend where it is not open yet. The error of an
// unknown name lists those that exist.
BACKPLANE_API bp_device parse_device(std::string_view name);
BACKPLANE_API std::string device_name(bp_device device);
BACKPLANE_API std::vector<DeviceInfo> devices();
// Where creation ops without a device put their results. "cpu" at the start.
BACKPLANE_API bp_device default_device();
BACKPLANE_API void set_default_device(bp_device device);

BACKPLANE_API Tensor empty(Shape shape, bp_dtype dtype, bp_device device);
// Copies `shape` elements with `strides` (in elements, one per axis; empty: contiguous) from host memory. For bools,
// every byte except 0 is true. Throws for a null address if there are elements, as to_host does.
BACKPLANE_API Tensor from_host(const void* data, Shape shape, Shape strides, bp_dtype dtype, bp_device device);
// Waits for the tensor's last write and copies its elements, row-major, to `dst` (nbytes of them).
BACKPLANE_API void to_host(const Tensor& tensor, void* dst);
// Is every bool the byte 0 or 1, as in a tensor?
BACKPLANE_API bool are_bools(const void* data, Shape shape, Shape strides) noexcept;
// A tensor over the caller's memory. `release_owner(owner)` runs when the storage dies. Host memory only. Throws if
// are_bools is false.
BACKPLANE_API Tensor wrap_host(void* data, Shape shape, Shape strides, bp_dtype dtype, void* owner,
                               void (*release_owner)(void*), bool read_only);
BACKPLANE_API Tensor to_device(const Tensor& tensor, bp_device device);  // a call that autograd records
BACKPLANE_API void synchronize(bp_device device);

// Memory of a device, in bytes as its allocator rounds them. Each of these throws Error(BP_ERROR_NOT_IMPLEMENTED)
// where the device's backend does not offer it.
struct MemoryStats {
  uint64_t allocated;  // now
  uint64_t peak;       // of `allocated`, since the start or the last reset
  uint64_t reserved;   // held from the system: allocated, or kept for reuse
  uint64_t allocations;
  uint64_t cache_hits;            // allocations that were served from what was kept
  std::optional<uint64_t> limit;  // of `reserved`
};
BACKPLANE_API MemoryStats memory_stats(bp_device device);
BACKPLANE_API void reset_peak_memory_stats(bp_device device);
// Returns the memory that is kept for reuse to the system.
BACKPLANE_API void empty_cache(bp_device device);
// An allocation that would exceed the limit, after the cache was emptied, throws Error(BP_ERROR_MEMORY). Empty: no
// limit.
BACKPLANE_API void set_memory_limit(bp_device device, std::optional<uint64_t> bytes);

// How the consumer of an exported tensor reads it. Ordered: after the work that the tensor waits for. With `stream`, a
// vendor handle, that stream waits on the device. Without one, or if the backend does not accept external streams, the
// host waits before it returns.
struct DlpackConsumer {
  bool ordered = true;
  std::optional<void*> stream;
};
// For a producer: the vendor's handle of this thread's current stream on a device, by DLPack's numbers. Empty if the
// stream does not have a handle, or no loaded backend has the device.
BACKPLANE_API std::optional<int64_t> dlpack_stream(int32_t device_type, int32_t device_id);

// The caller owns the returned value. `from_dlpack` takes ownership of `managed` only when it succeeds. It copies if
// are_bools is false. The unversioned form has no read-only flag, so its memory is taken as read-only. On a
// device with streams, the producer's work precedes later work on this thread's current stream, and the producer gets
// its memory back once the work that uses it has ended.
BACKPLANE_API DLManagedTensorVersioned* to_dlpack(const Tensor& tensor, const DlpackConsumer& consumer = {});
BACKPLANE_API Tensor from_dlpack(DLManagedTensorVersioned* managed);
BACKPLANE_API Tensor from_dlpack(DLManagedTensor* managed);

BACKPLANE_API int dtype_size(bp_dtype dtype) noexcept;  // bytes
BACKPLANE_API const char* dtype_name(bp_dtype dtype) noexcept;
// BP_DTYPE_NONE where the two do not promote.
BACKPLANE_API bp_dtype promote(bp_dtype a, bp_dtype b) noexcept;

}  // namespace backplane
