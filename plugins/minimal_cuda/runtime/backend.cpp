// The driver's devices, and launches on their streams; see backend.hpp and kernels/launch.hpp.
#include "runtime/backend.hpp"

#include "kernels/kernels.hpp"
#include "kernels/launch.hpp"

// The kernels in PTX, which the assembler puts beside the code: kModules, of texts that end with a 0.
#include "modules.inc"

namespace minimal {
namespace {

constexpr int64_t kThreads = 128, kMostBlocks = 65535;

}  // namespace

Device::Device(int ordinal) {
  check(driver().cuDeviceGet(&number, ordinal), "cuDeviceGet");
  check(driver().cuDevicePrimaryCtxRetain(&context, number), "cuDevicePrimaryCtxRetain");
}

Device::~Device() {
  for (const auto& [module, handle] : modules_) (void)driver().cuModuleUnload(handle);
  (void)driver().cuDevicePrimaryCtxRelease_v2(number);
}

CudaHandle Device::function(size_t module, const char* name) {
  std::lock_guard lock(mutex_);
  CudaHandle& found = functions_[{module, name}];
  if (found != nullptr) return found;
  CudaHandle& loaded = modules_[module];
  if (loaded == nullptr) check(driver().cuModuleLoadData(&loaded, kModules[module]), "cuModuleLoadData");
  check(driver().cuModuleGetFunction(&found, loaded, name), "cuModuleGetFunction");
  return found;
}

int32_t Backend::count() {
  int n = 0;
  check(driver().cuDeviceGetCount(&n), "cuDeviceGetCount");
  BP_CHECK(n > 0, DEVICE, "no device: cuDeviceGetCount gives none");
  return n;
}

Device& Backend::device(int32_t ordinal) {
  const int32_t n = count();
  BP_CHECK(ordinal >= 0 && ordinal < n, VALUE, kName, ": no device ", ordinal, "; there are ", n);
  std::lock_guard lock(mutex_);
  devices_.resize(static_cast<size_t>(n));
  std::unique_ptr<Device>& device = devices_[static_cast<size_t>(ordinal)];
  if (!device) device = std::make_unique<Device>(ordinal);
  return *device;
}

bool has_float64(Context) { return true; }

void record(const Launch& launch) {
  static constexpr const char* kNames[] = {
#define MINIMAL_NAME(name, number) #name,
      MINIMAL_TYPED_KERNELS(MINIMAL_NAME) MINIMAL_MOVING_KERNELS(MINIMAL_NAME)
#undef MINIMAL_NAME
  };
  const bp_frame& frame = *launch.call.frame;
  Stream& stream = stream_of(frame.stream);
  Device& device = stream.device();
  const Current current(device);
  // As CMakeLists.txt lists the modules: float16 and bfloat16 have none of their own.
  const size_t dtype = launch.dtype - (launch.dtype > BP_UINT64 ? 2u : 0u);
  const CudaHandle function =
      device.function(launch.kernel >= Kernel::move ? 0 : 1 + dtype, kNames[static_cast<size_t>(launch.kernel)]);
  Arguments arguments = launch.arguments;
  if (!launch.watched.empty())
    arguments.found = stream.take_pinned(sizeof(uint32_t), frame.ticket, launch.watched).device;
  const auto blocks = static_cast<unsigned>(std::min((arguments.items + kThreads - 1) / kThreads, kMostBlocks));
  void* parameters[] = {&arguments};
  check(driver().cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, stream.handle(), parameters, nullptr),
        "cuLaunchKernel");
}

}  // namespace minimal
