// Opening the driver, and which of its errors are fatal; see driver.hpp.
#include "driver/driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>

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

// "The process must be terminated and relaunched" (CUDA Driver API, CUresult): faults of kernels, of memory and links.
// Between them lie others, about peers and registered memory, that harm nothing.
constexpr driver::Result kFatal[] = {214 /* ECC */,
                                     220 /* NVLINK */,
                                     226 /* CONTAINED */,
                                     driver::kIllegalAddress,
                                     driver::kLaunchTimeout,
                                     709 /* CONTEXT_IS_DESTROYED */,
                                     710 /* ASSERT */,
                                     714 /* HARDWARE_STACK_ERROR */,
                                     715 /* ILLEGAL_INSTRUCTION */,
                                     driver::kMisalignedAddress,
                                     717 /* INVALID_ADDRESS_SPACE */,
                                     718 /* INVALID_PC */,
                                     driver::kLaunchFailed,
                                     721 /* TENSOR_MEMORY_LEAK */,
                                     driver::kUnknown};

bool is_fatal(driver::Result result) {
  return std::find(std::begin(kFatal), std::end(kFatal), result) != std::end(kFatal);
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
  const bp_status code = result == driver::kOutOfMemory ? BP_ERROR_MEMORY
                         : is_fatal(result)             ? BP_ERROR_DEVICE_LOST
                                                        : BP_ERROR_DEVICE;
  ::backplane::detail::fail(code, "cuda: ", call, ": ", error_text(opened().driver, result));
}

}  // namespace backplane::cuda
