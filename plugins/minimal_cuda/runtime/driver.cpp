// Opening the driver; see driver.hpp.
#include "runtime/driver.hpp"

#include <dlfcn.h>

#include "backplane/error.hpp"

namespace minimal {
namespace {

constexpr CudaResult kOutOfMemory = 2, kFirstLost = 700, kLastLost = 721, kUnknown = 999;

Driver open_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  BP_CHECK(library != nullptr, DEVICE, "no driver: libcuda.so.1 was not found. Fix: install NVIDIA's driver");
  Driver made;
#define MINIMAL_FIND(name, parameters)                                           \
  made.name = reinterpret_cast<decltype(made.name)>(dlsym(library, #name));      \
  BP_CHECK(made.name != nullptr, DEVICE, "no driver: libcuda.so.1 lacks " #name, \
           ". Fix: install a driver for CUDA 12 or later");
  MINIMAL_DRIVER(MINIMAL_FIND)
#undef MINIMAL_FIND
  const CudaResult result = made.cuInit(0);
  BP_CHECK(result == 0, DEVICE, "no device: cuInit failed with code ", result);
  return made;
}

}  // namespace

const Driver& driver() {
  static const Driver opened = open_driver();  // tried again at the next call where it throws
  return opened;
}

void check(CudaResult result, const char* call) {
  if (result == 0) [[likely]]
    return;
  const bool lost = (result >= kFirstLost && result <= kLastLost) || result == kUnknown;
  const char* name = nullptr;
  (void)driver().cuGetErrorName(result, &name);
  ::backplane::detail::fail(result == kOutOfMemory ? BP_ERROR_MEMORY
                            : lost                 ? BP_ERROR_DEVICE_LOST
                                                   : BP_ERROR_DEVICE,
                            "minimal: ", call, " failed with code ", result, name != nullptr ? ", " : "",
                            name != nullptr ? name : "");
}

}  // namespace minimal
