// WebGPU's adapters, and launches on their streams; see backend.hpp and kernels/launch.hpp.
#include "runtime/backend.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/kernels.hpp"

namespace minimal {
namespace {

constexpr int64_t kMostGroups = 65535;  // of every device, in one dimension

// What shaders/kernels.wgsl calls Arguments.
struct DeviceArguments {
  uint32_t at[kMaxOperands];
  int64_t n[6];
  uint32_t items, fault, rank[2];
  int32_t rows[kMaxDims + 1][1 + kMaxOperands];
};
static_assert(offsetof(DeviceArguments, rows) == 80);

// How many of a kernel's numbers are sizes, which it reads as 32 bits; others are bits of elements.
size_t count_of_sizes(Kernel kernel) {
  if (kernel == Kernel::count || kernel == Kernel::fill) return 0;
  return kernel == Kernel::draw ? 1 : kernel == Kernel::fold ? 3 : 6;
}

DeviceArguments narrowed(const Launch& launch) {
  const Arguments& given = launch.arguments;
  const auto narrow = [&](int64_t number) {
    BP_CHECK(number >= INT32_MIN && number <= INT32_MAX, NOT_IMPLEMENTED, launch.call.op_name(), ": found the size ",
             number, ", expected sizes and strides in bytes below 2^31 on this device");
    return static_cast<int32_t>(number);
  };
  DeviceArguments out{};
  std::copy(std::begin(given.n), std::end(given.n), out.n);
  for (size_t i = 0; i < count_of_sizes(launch.kernel); ++i) narrow(given.n[i]);
  out.items = static_cast<uint32_t>(narrow(given.items));
  for (int loop = 0; loop < 2; ++loop) out.rank[loop] = given.rank[loop];
  for (uint32_t d = 0; d < given.rank[0] + given.rank[1]; ++d)
    for (int k = 0; k <= kMaxOperands; ++k) out.rows[d][k] = narrow(given.rows[d][k]);
  return out;
}

}  // namespace

Backend::~Backend() {
  devices_.clear();
  for (const WGPUAdapter adapter : adapters_) wgpuAdapterRelease(adapter);
  if (instance_ != nullptr) wgpuInstanceRelease(instance_);
}

int32_t Backend::count() {
  std::lock_guard lock(mutex_);
  if (!adapters_.empty()) return static_cast<int32_t>(adapters_.size());
  if (instance_ == nullptr) {
    WGPUInstanceExtras extras{};
    extras.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
    extras.backends = WGPUInstanceBackend_Primary;  // OpenGL lacks what the kernels need
    WGPUInstanceDescriptor descriptor = WGPU_INSTANCE_DESCRIPTOR_INIT;
    descriptor.nextInChain = &extras.chain;
    instance_ = wgpuCreateInstance(&descriptor);
  }
  adapters_.resize(wgpuInstanceEnumerateAdapters(instance_, nullptr, nullptr));
  wgpuInstanceEnumerateAdapters(instance_, nullptr, adapters_.data());
  BP_CHECK(!adapters_.empty(), DEVICE,
           "WebGPU finds no adapter. Fix: install a driver of Vulkan (Debian: mesa-vulkan-drivers)");
  devices_.resize(adapters_.size());
  return static_cast<int32_t>(adapters_.size());
}

WGPUAdapter Backend::adapter(int32_t ordinal) {
  const int32_t n = count();
  BP_CHECK(ordinal >= 0 && ordinal < n, VALUE, kName, ": no device ", ordinal, "; there are ", n);
  return adapters_[static_cast<size_t>(ordinal)];  // never changes once it was looked for
}

Device& Backend::device(int32_t ordinal) {
  const WGPUAdapter found = adapter(ordinal);
  std::lock_guard lock(mutex_);
  std::unique_ptr<Device>& device = devices_[static_cast<size_t>(ordinal)];
  if (!device) device = std::make_unique<Device>(found);
  return *device;
}

bool has_float64(Context) { return false; }

void record(const Launch& launch) {
  Stream& stream = stream_of(launch.call.frame->stream);
  const Arguments& given = launch.arguments;
  Work work{};
  Shader shader{launch.kernel, launch.dtype, given.in, given.out, given.function, given.second, {}};
  DeviceArguments arguments = narrowed(launch);
  for (uint32_t k = 0; k < kMaxOperands; ++k) {
    shader.bindings[k] = k;
    if (given.at[k] == 0) continue;
    work.blocks[k] = stream.device().place(given.at[k]);
    arguments.at[k] = static_cast<uint32_t>(work.blocks[k].offset);
    for (uint32_t other = 0; other < k; ++other)
      if (work.blocks[other].buffer == work.blocks[k].buffer) {
        shader.bindings[k] = shader.bindings[other];
        work.blocks[k] = {};
        break;
      }
  }
  if (!launch.watched.empty()) arguments.fault = stream.watch(launch.call.frame->ticket, launch.watched);
  work.pipeline = stream.device().pipeline(shader);
  // A struct of WGSL has a multiple of its alignment as its size, and one row at least.
  const size_t rows = std::max(given.rank[0] + given.rank[1], 1u);
  work.arguments_size = (offsetof(DeviceArguments, rows) + rows * sizeof(arguments.rows[0]) + 15) / 16 * 16;
  work.arguments = stream.stage(work.arguments_size);
  std::memcpy(work.arguments.mapped, &arguments, work.arguments_size);
  work.groups = static_cast<uint32_t>(std::min((given.items + kGroup - 1) / kGroup, kMostGroups));
  stream.dispatch(work);
}

}  // namespace minimal
