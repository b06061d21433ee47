// The driver's devices, and launches on their streams; see backend.hpp and kernels/launch.hpp.
#include "runtime/backend.hpp"

#include <cstring>

#include "kernels/kernels.hpp"
#include "kernels/launch.hpp"

namespace minimal {
namespace {

constexpr uint32_t kGroup = 64, kMostGroups = 65535;  // as in shaders/arguments.glsl; of every device

}  // namespace

Backend::~Backend() {
  devices_.clear();
  if (instance_ != VK_NULL_HANDLE) vkDestroyInstance(instance_, nullptr);
}

int32_t Backend::count() {
  std::lock_guard lock(mutex_);
  if (!physical_.empty()) return static_cast<int32_t>(physical_.size());
  constexpr const char* kFix = ". Fix: install a Vulkan 1.2 driver (Debian: mesa-vulkan-drivers)";
  const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2};
  const VkInstanceCreateInfo info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
  VkResult result = VK_SUCCESS;
  if (instance_ == VK_NULL_HANDLE) result = vkCreateInstance(&info, nullptr, &instance_);
  BP_CHECK(result == VK_SUCCESS, DEVICE, "no Vulkan driver: vkCreateInstance failed with code ",
           static_cast<int>(result), kFix);
  VkPhysicalDevice found[16];
  uint32_t n = 16;
  result = vkEnumeratePhysicalDevices(instance_, &n, found);
  BP_CHECK(result == VK_SUCCESS || result == VK_INCOMPLETE, DEVICE,
           "no Vulkan driver: vkEnumeratePhysicalDevices failed with code ", static_cast<int>(result), kFix);
  std::string reason = "Vulkan lists no device";
  for (uint32_t i = 0; i < n; ++i) {
    const std::string lacks = Device::shortcoming(found[i]);
    if (lacks.empty())
      physical_.push_back(found[i]);
    else
      reason = lacks;
  }
  BP_CHECK(!physical_.empty(), DEVICE, "no usable device: ", reason, kFix);
  devices_.resize(physical_.size());
  return static_cast<int32_t>(physical_.size());
}

VkPhysicalDevice Backend::physical(int32_t ordinal) {
  const int32_t n = count();
  BP_CHECK(ordinal >= 0 && ordinal < n, VALUE, kName, ": no device ", ordinal, "; there are ", n);
  return physical_[static_cast<size_t>(ordinal)];  // never changes once it was looked for
}

Device& Backend::device(int32_t ordinal) {
  const VkPhysicalDevice found = physical(ordinal);
  std::lock_guard lock(mutex_);
  std::unique_ptr<Device>& device = devices_[static_cast<size_t>(ordinal)];
  if (!device) device = std::make_unique<Device>(found);
  return *device;
}

bool has_float64(Context call) { return stream_of(call.frame->stream).device().float64; }

// The arguments lie in staging memory, their rows as many as there are; the word for bad data behind them.
void record(const Launch& launch) {
  Stream& stream = stream_of(launch.call.frame->stream);
  const Arguments& given = launch.arguments;
  const bool moves = launch.kernel >= Kernel::move;
  // As CMakeLists.txt lists the modules: float16 and bfloat16 have none of their own.
  constexpr size_t kTyped = BP_DTYPE_COUNT - 2;
  const size_t dtype = launch.dtype - (launch.dtype > BP_UINT64 ? 2u : 0u);
  const size_t module = moves ? 0 : 1 + dtype + (stream.device().float64 ? kTyped : 0);
  const VkPipeline pipeline = stream.device().pipeline(
      {module, {static_cast<uint32_t>(launch.kernel), given.function, given.second, given.in, given.out}});
  const size_t size = offsetof(Arguments, rows) + (given.rank[0] + given.rank[1]) * sizeof(given.rows[0]);
  const Staged staged = stream.stage(size + sizeof(uint64_t));
  std::memcpy(staged.mapped, &given, size);
  std::memset(staged.mapped + size, 0, sizeof(uint64_t));
  if (!launch.watched.empty()) {
    const uint64_t word = staged.address + size;
    std::memcpy(staged.mapped + offsetof(Arguments, found), &word, sizeof(word));
    stream.watch(staged.mapped + size, launch.call.frame->ticket, launch.watched);
  }
  const int64_t groups = (given.items + kGroup - 1) / kGroup;
  stream.dispatch(pipeline, staged.address, static_cast<uint32_t>(std::min<int64_t>(groups, kMostGroups)));
}

}  // namespace minimal
