// Opening the driver, and which of its errors are fatal; see driver.hpp.
#include "runtime/driver.hpp"

#include <dlfcn.h>

#include "backplane/error.hpp"

namespace backplane::cuda {
namespace {

struct Opened {
  Driver driver;
  std::string reason;  // empty: it works
};

std::string error_text(const Driver& driver, driver::Result result) {
  const char *name = nullptr, *text = nullptr;
  if (driver.cuGetErrorName) (void)driver.cuGetErrorName(result, &name);
  if (driver.cuGetErrorString) (void)driver.cuGetErrorString(result, &text);
  return (name ? name : "error " + std::to_string(result)) + (text ? std::string(": ") + text : "");
}

Opened open_driver() {
  Opened made;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    made.reason = "no driver: libcuda.so.1 was not found. Fix: install NVIDIA's driver";
    return made;
  }
#define BP_CUDA_FIND(function, parameters)                                                            \
  made.driver.function = reinterpret_cast<decltype(made.driver.function)>(dlsym(library, #function)); \
  if (!made.driver.function && made.reason.empty())                                                   \
    made.reason = "no driver: libcuda.so.1 lacks " #function ". Fix: install a driver for CUDA 12 or later";
  BP_CUDA_DRIVER(BP_CUDA_FIND)
#undef BP_CUDA_FIND
  if (!made.reason.empty()) return made;
  if (const driver::Result result = made.driver.cuInit(0); result != driver::kSuccess)
    made.reason = std::string(result == driver::kNoDevice ? "no device" : "no driver") +
                  ": cuInit: " + error_text(made.driver, result);
  return made;
}

const Opened& opened() {
  static const Opened* made = new Opened(open_driver());  // the driver is never closed
  return *made;
}

bool is_fatal(driver::Result result) {
  switch (result) {
    case driver::kSuccess:
    case driver::kInvalidValue:
    case driver::kOutOfMemory:
    case driver::kNotInitialized:
    case driver::kNotReady:
    case driver::kNotFound:
      return false;
    // "The process must be terminated and relaunched" (CUDA Driver API, CUresult): faults of kernels, of memory and
    // links.
    case 214:  // ECC_UNCORRECTABLE
    case 220:  // NVLINK_UNCORRECTABLE
    case 226:  // CONTAINED
      return true;
    default:
      return result >= driver::kIllegalAddress && result <= 721;
  }
}

}  // namespace

const Driver* find_driver(std::string* reason) {
  const Opened& made = opened();
  if (reason) *reason = made.reason;
  return made.reason.empty() ? &made.driver : nullptr;
}

const Driver& the_driver() {
  std::string reason;
  const Driver* found = find_driver(&reason);
  if (!found) ::backplane::detail::fail(BP_ERROR_DEVICE, "cuda: ", reason);
  return *found;
}

void check(driver::Result result, const char* call) {
  if (result == driver::kSuccess) [[likely]]
    return;
  const bp_status code = result == driver::kOutOfMemory                   ? BP_ERROR_MEMORY
                         : is_fatal(result) || result == driver::kUnknown ? BP_ERROR_DEVICE_LOST
                                                                          : BP_ERROR_DEVICE;
  ::backplane::detail::fail(code, "cuda: ", call, ": ", error_text(opened().driver, result));
}

}  // namespace backplane::cuda
