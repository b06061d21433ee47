// The table of devices, dtypes, and errors.
#include <c10/util/Exception.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "device_tensors.hpp"

namespace backplane_torch {

namespace {

constexpr int kMostDevices = 64;
bp_device g_devices[kMostDevices];
std::atomic<int> g_device_count{0};
std::mutex g_device_lock;
thread_local c10::DeviceIndex t_current = 0;

struct DtypePair {
  c10::ScalarType theirs;
  bp_dtype ours;
};
constexpr DtypePair kDtypes[] = {{c10::ScalarType::Bool, BP_BOOL},
                                 {c10::ScalarType::Char, BP_INT8},
                                 {c10::ScalarType::Short, BP_INT16},
                                 {c10::ScalarType::Int, BP_INT32},
                                 {c10::ScalarType::Long, BP_INT64},
                                 {c10::ScalarType::Byte, BP_UINT8},
                                 {c10::ScalarType::UInt16, BP_UINT16},
                                 {c10::ScalarType::UInt32, BP_UINT32},
                                 {c10::ScalarType::UInt64, BP_UINT64},
                                 {c10::ScalarType::Half, BP_FLOAT16},
                                 {c10::ScalarType::BFloat16, BP_BFLOAT16},
                                 {c10::ScalarType::Float, BP_FLOAT32},
                                 {c10::ScalarType::Double, BP_FLOAT64},
                                 {c10::ScalarType::ComplexFloat, BP_COMPLEX64},
                                 {c10::ScalarType::ComplexDouble, BP_COMPLEX128}};

struct DtypeTables {
  bp_dtype ours[static_cast<int>(c10::ScalarType::NumOptions)];
  c10::ScalarType theirs[BP_DTYPE_COUNT];
  DtypeTables() {
    std::fill(std::begin(ours), std::end(ours), static_cast<bp_dtype>(BP_DTYPE_NONE));
    for (const DtypePair& pair : kDtypes) {
      ours[static_cast<int>(pair.theirs)] = pair.ours;
      theirs[pair.ours] = pair.theirs;
    }
  }
};
const DtypeTables g_dtypes;

}  // namespace

c10::DeviceIndex add_device(bp_device device) {
  std::lock_guard<std::mutex> lock(g_device_lock);
  const int count = g_device_count.load();
  for (int i = 0; i < count; ++i)
    if (g_devices[i].backend == device.backend && g_devices[i].ordinal == device.ordinal)
      return static_cast<c10::DeviceIndex>(i);
  TORCH_CHECK(count < kMostDevices, "backplane.torch: found more than ", kMostDevices, " devices");
  g_devices[count] = device;
  g_device_count.store(count + 1);
  start_autograd_threads(count + 1);
  return static_cast<c10::DeviceIndex>(count);
}

bp_device device_of(c10::DeviceIndex index) {
  if (index < 0) index = t_current;
  TORCH_CHECK(index < g_device_count.load(), "backplane.torch: found device index ", static_cast<int>(index),
              ", expected one below ", g_device_count.load(),
              ". Fix: backplane.torch.device(name) gives a device by name");
  return g_devices[index];
}

c10::DeviceIndex index_of(bp_device device) { return add_device(device); }
int device_count() noexcept { return g_device_count.load(); }
c10::DeviceIndex current_device() noexcept { return t_current; }
void set_current_device(c10::DeviceIndex index) {
  device_of(index);
  if (index >= 0) t_current = index;
}

bp_dtype dtype_of(c10::ScalarType type) {
  const bp_dtype found = g_dtypes.ours[static_cast<int>(type)];
  TORCH_CHECK_TYPE(found != BP_DTYPE_NONE, "backplane.torch: found the dtype ", type,
                   ", which Backplane does not have. Fix: cast to a dtype of at least 8 bits that is not quantized");
  return found;
}

c10::ScalarType scalar_type_of(bp_dtype dtype) { return g_dtypes.theirs[dtype]; }

void rethrow(const backplane::Error& error, const std::string& place) {
  const std::string text = place + ": " + error.what();
  switch (error.code()) {
    case BP_ERROR_INDEX:
      TORCH_CHECK_INDEX(false, text);
    case BP_ERROR_NOT_IMPLEMENTED:
      TORCH_CHECK_NOT_IMPLEMENTED(false, text);
    case BP_ERROR_MEMORY:
      TORCH_CHECK_WITH(OutOfMemoryError, false, text);
    default:
      TORCH_CHECK(false, text);
  }
}

}  // namespace backplane_torch
