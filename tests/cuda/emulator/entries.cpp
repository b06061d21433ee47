// The entry points of libcuda.so.1 that concern devices, contexts and modules. Declarations are the plugin's own, which
// tests/cuda checks against NVIDIA's.
#include "entries.hpp"

#include <utility>
#include <vector>

namespace emulator {

int enter(const char* name) {
  Device& device = Device::instance();
  ++device.calls;
  if (device.fail_at != 0 && device.calls == device.fail_at) {
    std::fprintf(stderr, "emulated driver: call %llu, %s, fails as asked\n",
                 static_cast<unsigned long long>(device.calls), name);
    return device.fail_with;
  }
  return 0;
}

Context* current_context() {
  auto& stack = Device::instance().current();
  return stack.empty() ? nullptr : stack.back();
}

int refuse(const char* call, const std::string& what, int code) {
  std::fprintf(stderr, "emulated driver: %s: %s\n", call, what.c_str());
  return code;
}

namespace {

struct Loaded {
  std::unique_ptr<Module> module;
  int device;
};
std::vector<Loaded>& modules() {
  static auto* made = new std::vector<Loaded>();
  return *made;
}

struct Text {
  int code;
  const char* name;
  const char* text;
};
constexpr Text kTexts[] = {{0, "CUDA_SUCCESS", "no error"},
                           {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
                           {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
                           {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
                           {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
                           {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
                           {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
                           {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported"},
                           {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
                           {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
                           {600, "CUDA_ERROR_NOT_READY", "device not ready"},
                           {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
                           {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
                           {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
                           {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
                           {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "memory is already registered"},
                           {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "memory has not been registered"},
                           {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
                           {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
                           {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
                           {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted while a stream is capturing"},
                           {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture was broken by an earlier call"},
                           {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency on uncaptured work"},
                           {907, "CUDA_ERROR_CAPTURED_EVENT", "not permitted on an event last recorded in a capture"},
                           {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "the capture began on another thread"},
                           {999, "CUDA_ERROR_UNKNOWN", "unknown error"}};

const Text* text_of(int code) {
  for (const Text& one : kTexts)
    if (one.code == code) return &one;
  return nullptr;
}

}  // namespace

void drop_modules(int device) {
  std::erase_if(modules(), [device](const Loaded& one) { return one.device == device; });
}

}  // namespace emulator

using namespace emulator;

extern "C" {

int cuInit(unsigned flags) {
  BP_EMULATOR_ENTER(cuInit);
  return flags == 0 ? 0 : 1;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
// NVRTC asks for tables of the driver's own. Where the driver says that it has none it does without; where nobody
// answers it crashes.
int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return 500;
}
int cuGetErrorName(int error, const char** text) {
  *text = text_of(error) ? text_of(error)->name : nullptr;
  return *text ? 0 : 1;
}
int cuGetErrorString(int error, const char** text) {
  *text = text_of(error) ? text_of(error)->text : nullptr;
  return *text ? 0 : 1;
}
int cuDeviceGetCount(int* count) {
  BP_EMULATOR_ENTER(cuDeviceGetCount);
  *count = kDevices;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  BP_EMULATOR_ENTER(cuDeviceGet);
  if (ordinal < 0 || ordinal >= kDevices) return 101;
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  BP_EMULATOR_ENTER(cuDeviceGetName);
  std::snprintf(name, static_cast<size_t>(length), "emulated device %d", device);
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  BP_EMULATOR_ENTER(cuDeviceTotalMem);
  *bytes = kMemoryOfADevice;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  BP_EMULATOR_ENTER(cuDeviceGetAttribute);
  static constexpr std::pair<int, int> kValues[] = {{driver::kMajor, 9},
                                                    {driver::kMinor, 0},
                                                    {driver::kMultiprocessors, 4},
                                                    {driver::kWarpSize, 32},
                                                    {driver::kIntegrated, 0},
                                                    {driver::kSharedMemoryPerBlock, 48 << 10},
                                                    {driver::kCacheSize, 4 << 20},
                                                    {driver::kManagedMemory, 0},
                                                    {driver::kCooperativeLaunch, 0},
                                                    {driver::kUnifiedAddressing, 1}};
  for (const auto& [known, is] : kValues)
    if (known == attribute) return *value = is, 0;
  return 1;
}
int cuDeviceGetPCIBusId(char* text, int length, int device) {
  BP_EMULATOR_ENTER(cuDeviceGetPCIBusId);
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", device + 1);
  return 0;
}
int cuDeviceCanAccessPeer(int* yes, int device, int peer) {
  BP_EMULATOR_ENTER(cuDeviceCanAccessPeer);
  if (device < 0 || device >= kDevices || peer < 0 || peer >= kDevices) return 101;
  *yes = device != peer;
  return 0;
}
int cuDevicePrimaryCtxRetain(driver::Context* context, int device) {
  BP_EMULATOR_ENTER(cuDevicePrimaryCtxRetain);
  Context& kept = Device::instance().contexts[device];
  ++kept.retained;
  *context = reinterpret_cast<driver::Context>(&kept);
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  BP_EMULATOR_ENTER(cuDevicePrimaryCtxRelease);
  Context& kept = Device::instance().contexts[device];
  return kept.retained-- > 0 ? 0 : 201;
}
// All that the context had is gone, and handles of it stand for nothing.
int cuDevicePrimaryCtxReset_v2(int device) {
  BP_EMULATOR_ENTER(cuDevicePrimaryCtxReset);
  if (device < 0 || device >= kDevices) return 101;
  Device& all = Device::instance();
  all.drop(device);
  const auto is_of = [device](const auto& one) { return one.device == device; };
  all.streams.erase_if(is_of), all.events.erase_if(is_of), all.graphs.erase_if(is_of), all.executables.erase_if(is_of);
  drop_modules(device);
  drop_host_blocks(device);
  Memory::instance().free_all(device);
  for (Context& context : all.contexts) context.peers &= ~(1u << device);
  all.contexts[device].peers = 0;
  all.contexts[device].lost.reset();
  return 0;
}
int cuCtxPushCurrent_v2(driver::Context context) {
  BP_EMULATOR_ENTER(cuCtxPushCurrent);
  Device::instance().current().push_back(reinterpret_cast<Context*>(context));
  return 0;
}
int cuCtxPopCurrent_v2(driver::Context* context) {
  std::lock_guard lock(Device::instance().mutex);
  auto& stack = Device::instance().current();
  if (stack.empty()) return 201;
  *context = reinterpret_cast<driver::Context>(stack.back());
  stack.pop_back();
  return 0;
}

int cuCtxSynchronize() {
  BP_EMULATOR_ENTER_CONTEXT(cuCtxSynchronize);
  for (const auto& [handle, stream] : Device::instance().streams.living())
    if (stream->device == context->device && stream->capture)
      return break_capture("cuCtxSynchronize", *stream->capture, 900);
  Device::instance().run_all();
  return context->lost ? context->lost->code : 0;
}
int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  BP_EMULATOR_ENTER_CONTEXT(cuCtxGetStreamPriorityRange);
  *least = 0;
  *greatest = kGreatestPriority;
  return 0;
}
int cuCtxEnablePeerAccess(driver::Context peer, unsigned) {
  BP_EMULATOR_ENTER_CONTEXT(cuCtxEnablePeerAccess);
  const int other = reinterpret_cast<Context*>(peer)->device;
  if (other == context->device) return 101;
  if (context->peers & 1u << other) return driver::kPeerAccessAlreadyEnabled;
  context->peers |= 1u << other;
  return 0;
}

int cuModuleLoadData(driver::Module* module, const void* image) {
  BP_EMULATOR_ENTER_CONTEXT(cuModuleLoadData);
  if (const int refused = check_not_capturing("cuModuleLoadData")) return refused;
  try {
    auto made = load_module(static_cast<const char*>(image));
    *module = reinterpret_cast<driver::Module>(made.get());
    modules().push_back({std::move(made), context->device});
    return 0;
  } catch (const Fault& fault) {
    std::fprintf(stderr, "emulated driver: %s\n", fault.what());
    return fault.code;
  }
}
int cuModuleUnload(driver::Module module) {
  BP_EMULATOR_ENTER_CONTEXT(cuModuleUnload);
  Device::instance().run_all();
  for (auto at = modules().begin(); at != modules().end(); ++at)
    if (at->module.get() == reinterpret_cast<Module*>(module)) return modules().erase(at), 0;
  return 400;
}
int cuModuleGetFunction(driver::Function* function, driver::Module module, const char* name) {
  BP_EMULATOR_ENTER_CONTEXT(cuModuleGetFunction);
  auto& functions = reinterpret_cast<Module*>(module)->functions;
  const auto found = functions.find(name);
  if (found == functions.end() || !found->second->entry) return 500;
  try {
    decode(*reinterpret_cast<Module*>(module), *found->second);
  } catch (const Fault& fault) {
    std::fprintf(stderr, "emulated driver: %s\n", fault.what());
    return fault.code;
  }
  *function = reinterpret_cast<driver::Function>(found->second.get());
  return 0;
}

}  // extern "C"
