// The entry points of libcuda.so.1 that concern devices, contexts, modules and memory. Declarations are the plugin's
// own, which tests/cuda checks against NVIDIA's.
#include "entries.hpp"

#include <cstdlib>
#include <cstring>

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

namespace {

std::set<std::unique_ptr<Module>, std::less<>>& modules() {
  static auto* made = new std::set<std::unique_ptr<Module>, std::less<>>();
  return *made;
}
std::map<void*, size_t>& host_blocks() {
  static auto* made = new std::map<void*, size_t>();
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
                           {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
                           {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
                           {600, "CUDA_ERROR_NOT_READY", "device not ready"},
                           {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
                           {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
                           {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
                           {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
                           {999, "CUDA_ERROR_UNKNOWN", "unknown error"}};

const Text* text_of(int code) {
  for (const Text& one : kTexts)
    if (one.code == code) return &one;
  return nullptr;
}

constexpr uint64_t kTotal = uint64_t{4} << 30;

}  // namespace

bool is_host_block(const void* at) { return host_blocks().contains(const_cast<void*>(at)); }
bool in_host_block(uint64_t address, uint64_t size) {
  const auto after = host_blocks().upper_bound(reinterpret_cast<void*>(address));
  if (after == host_blocks().begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return address + size <= reinterpret_cast<uint64_t>(begin) + bytes;
}

}  // namespace emulator

using namespace emulator;
namespace driver = backplane::cuda::driver;

extern "C" {

int cuInit(unsigned flags) {
  BP_EMULATOR_ENTER(cuInit);
  return flags == 0 ? 0 : 1;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
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
  *bytes = kTotal;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  BP_EMULATOR_ENTER(cuDeviceGetAttribute);
  switch (attribute) {
    case driver::kMajor:
      *value = 9;
      return 0;
    case driver::kMinor:
      *value = 0;
      return 0;
    case driver::kMultiprocessors:
      *value = 4;
      return 0;
    case driver::kUnifiedAddressing:
      *value = 1;
      return 0;
    default:
      return 1;
  }
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

int cuModuleLoadData(driver::Module* module, const void* image) {
  BP_EMULATOR_ENTER_CONTEXT(cuModuleLoadData);
  try {
    auto made = load_module(static_cast<const char*>(image));
    *module = reinterpret_cast<driver::Module>(made.get());
    modules().insert(std::move(made));
    return 0;
  } catch (const Fault& fault) {
    std::fprintf(stderr, "emulated driver: %s\n", fault.what());
    return fault.code;
  }
}
int cuModuleUnload(driver::Module module) {
  BP_EMULATOR_ENTER_CONTEXT(cuModuleUnload);
  Device::instance().run([] { return false; });
  for (auto at = modules().begin(); at != modules().end(); ++at)
    if (at->get() == reinterpret_cast<Module*>(module)) return modules().erase(at), 0;
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

int cuMemAlloc_v2(unsigned long long* pointer, size_t bytes) {
  BP_EMULATOR_ENTER_CONTEXT(cuMemAlloc);
  if (bytes == 0) return 1;
  Memory& memory = Memory::instance();
  if (memory.in_use() + bytes > kTotal) return 2;
  *pointer = memory.allocate(bytes, "cuMemAlloc, call " + std::to_string(Device::instance().calls));
  return *pointer ? 0 : 2;
}
// Waits for the device, as the driver does.
int cuMemFree_v2(unsigned long long pointer) {
  BP_EMULATOR_ENTER_CONTEXT(cuMemFree);
  Device::instance().run([] { return false; });
  return Memory::instance().free(pointer) ? 0 : 1;
}
int cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  BP_EMULATOR_ENTER_CONTEXT(cuMemHostAlloc);
  const uint64_t address = Memory::instance().allocate(bytes, "cuMemHostAlloc");
  if (address == 0) return 2;
  *pointer = reinterpret_cast<void*>(address);
  std::memset(*pointer, 0, bytes);
  Memory::instance().write(address, bytes);  // the host writes it unseen
  host_blocks()[*pointer] = bytes;
  return 0;
}
int cuMemFreeHost(void* pointer) {
  BP_EMULATOR_ENTER(cuMemFreeHost);
  if (host_blocks().erase(pointer) == 0) return 1;
  return Memory::instance().free(reinterpret_cast<uint64_t>(pointer)) ? 0 : 1;
}
int cuMemHostGetDevicePointer_v2(unsigned long long* pointer, void* host, unsigned) {
  BP_EMULATOR_ENTER_CONTEXT(cuMemHostGetDevicePointer);
  if (!is_host_block(host)) return 1;
  *pointer = reinterpret_cast<uint64_t>(host);
  return 0;
}

}  // extern "C"
