// WebGPU devices; see device.hpp.
#include "runtime/device.hpp"

#include <algorithm>

namespace minimal {
namespace {

// wgpu-native reports an error while the call runs that caused it, on its thread.
void on_error(WGPUDevice const*, WGPUErrorType type, WGPUStringView message, void* device, void*) {
  static_cast<Device*>(device)->note_refusal(type, std::string(message.data, message.length));
}

void on_loss(WGPUDevice const*, WGPUDeviceLostReason reason, WGPUStringView, void* device, void*) {
  if (reason != WGPUDeviceLostReason_Destroyed) static_cast<Device*>(device)->is_lost = true;
}

void on_device(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message, void* out, void* why) {
  if (status == WGPURequestDeviceStatus_Success)
    *static_cast<WGPUDevice*>(out) = device;
  else
    *static_cast<std::string*>(why) = std::string(message.data, message.length);
}

}  // namespace

uint64_t Device::largest_block_of(WGPUAdapter adapter) {
  WGPULimits limits = WGPU_LIMITS_INIT;
  wgpuAdapterGetLimits(adapter, &limits);
  constexpr uint64_t kMost = (uint64_t{1} << 31) - 4;  // kernels count bytes in 31 bits
  return std::min({limits.maxBufferSize, limits.maxStorageBufferBindingSize, kMost}) / 4 * 4;
}

Device::Device(WGPUAdapter adapter) : largest_block(largest_block_of(adapter)) {
  WGPULimits limits = WGPU_LIMITS_INIT;
  wgpuAdapterGetLimits(adapter, &limits);
  WGPUDeviceDescriptor descriptor = WGPU_DEVICE_DESCRIPTOR_INIT;
  descriptor.requiredLimits = &limits;
  descriptor.deviceLostCallbackInfo = {nullptr, WGPUCallbackMode_AllowSpontaneous, on_loss, this, nullptr};
  descriptor.uncapturedErrorCallbackInfo = {nullptr, on_error, this, nullptr};
  std::string why;
  wgpuAdapterRequestDevice(adapter, &descriptor,
                           {nullptr, WGPUCallbackMode_AllowSpontaneous, on_device, &handle, &why});
  BP_CHECK(handle != nullptr, DEVICE, "minimal: the WebGPU adapter gives no device: ", why);
  queue = wgpuDeviceGetQueue(handle);
  make_layout();
  for (Buffer& buffer : unused) buffer = make_buffer(4, WGPUBufferUsage_Storage);
  no_faults = make_buffer(4, WGPUBufferUsage_Storage);
}

Device::~Device() {
  for (const auto& [shader, pipeline] : pipelines_) wgpuComputePipelineRelease(pipeline);
  for (Buffer& buffer : unused) buffer.reset();
  no_faults.reset();
  blocks_.clear();
  wgpuPipelineLayoutRelease(layout_);
  wgpuBindGroupLayoutRelease(bindings);
  wgpuQueueRelease(queue);
  wgpuDeviceRelease(handle);
}

void Device::make_layout() {
  WGPUBindGroupLayoutEntry entries[kFaultsBinding + 1];
  for (uint32_t i = 0; i <= kFaultsBinding; ++i) {
    entries[i] = WGPU_BIND_GROUP_LAYOUT_ENTRY_INIT;
    entries[i].binding = i;
    entries[i].visibility = WGPUShaderStage_Compute;
    entries[i].buffer.type =
        i == kArgumentsBinding ? WGPUBufferBindingType_ReadOnlyStorage : WGPUBufferBindingType_Storage;
  }
  WGPUBindGroupLayoutDescriptor group = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
  group.entryCount = std::size(entries);
  group.entries = entries;
  bindings = wgpuDeviceCreateBindGroupLayout(handle, &group);
  WGPUPipelineLayoutDescriptor layout = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
  layout.bindGroupLayoutCount = 1;
  layout.bindGroupLayouts = &bindings;
  layout_ = wgpuDeviceCreatePipelineLayout(handle, &layout);
  check("wgpuDeviceCreatePipelineLayout");
}

void Device::note_refusal(WGPUErrorType type, std::string message) {
  std::lock_guard lock(refusals_mutex_);
  refusals_.try_emplace(std::this_thread::get_id(), Refusal{type, std::move(message)});  // the first one is the cause
  has_refusals_ = true;
}

void Device::check(const char* call) {
  BP_CHECK(!is_lost, DEVICE_LOST, "minimal: ", call, ": the WebGPU device is lost");
  if (!has_refusals_) return;
  std::unique_lock lock(refusals_mutex_);
  const auto found = refusals_.extract(std::this_thread::get_id());
  has_refusals_ = !refusals_.empty();
  lock.unlock();
  if (found)
    ::backplane::detail::fail(found.mapped().type == WGPUErrorType_OutOfMemory ? BP_ERROR_MEMORY : BP_ERROR_DEVICE,
                              "minimal: ", call, " failed: ", found.mapped().message);
}

Buffer Device::make_buffer(uint64_t size, WGPUBufferUsage usage, bool is_mapped) {
  WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
  descriptor.size = size;
  descriptor.usage = usage;
  descriptor.mappedAtCreation = is_mapped;
  Buffer buffer(wgpuDeviceCreateBuffer(handle, &descriptor));
  check("wgpuDeviceCreateBuffer");
  return buffer;
}

uint64_t Device::allocate(uint64_t size) {
  BP_CHECK(size <= largest_block, MEMORY, "minimal: found a block of ", size, " bytes, expected at most ",
           largest_block);
  size = (size + 3) / 4 * 4;
  Buffer buffer = make_buffer(size, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst);
  std::lock_guard lock(mutex_);
  const uint64_t address = next_;
  next_ += (size / 256 + 2) * 256;  // the end of a block is in no other one
  blocks_.emplace(address, Block{std::move(buffer), size});
  return address;
}

void Device::deallocate(uint64_t address) {
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  BP_CHECK(found != blocks_.end(), VALUE, "minimal: deallocate: found ", address, ", expected the number of a block");
  wgpuBufferDestroy(found->second.buffer.get());
  blocks_.erase(found);
}

Place Device::place(uint64_t address) {
  std::lock_guard lock(mutex_);
  auto found = blocks_.upper_bound(address);
  const bool known = found != blocks_.begin() && address <= (--found)->first + found->second.size;
  BP_CHECK(known, VALUE, "minimal: found the number ", address, ", expected the number of a block of this device");
  return {found->second.buffer.get(), address - found->first, found->second.size};
}

WGPUComputePipeline Device::pipeline(const Shader& shader) {
  std::lock_guard lock(mutex_);
  if (const auto found = pipelines_.find(shader); found != pipelines_.end()) return found->second;
  const std::string text = shader_text(shader);
  WGPUShaderSourceWGSL source{};
  source.chain.sType = WGPUSType_ShaderSourceWGSL;
  source.code = view_of(text);
  WGPUShaderModuleDescriptor descriptor{};
  descriptor.nextInChain = &source.chain;
  const Ref<WGPUShaderModule, wgpuShaderModuleRelease> module(wgpuDeviceCreateShaderModule(handle, &descriptor));
  check("wgpuDeviceCreateShaderModule");
  WGPUComputePipelineDescriptor made_of = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
  made_of.layout = layout_;
  made_of.compute.module = module.get();
  made_of.compute.entryPoint = view_of("main");
  const WGPUComputePipeline made = wgpuDeviceCreateComputePipeline(handle, &made_of);
  check("wgpuDeviceCreateComputePipeline");
  return pipelines_.emplace(shader, made).first->second;
}

}  // namespace minimal
