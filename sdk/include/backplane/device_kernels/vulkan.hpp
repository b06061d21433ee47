// Kernels in GLSL that a plugin brings to the backend "vulkan".
//
//   backplane_add_plugin(mine OPS ops.yaml SOURCES plugin.cpp VULKAN wave.comp KERNELS_FOR vulkan)   # CMake
//
//   #include "wave.comp.hpp"  // made by CMake: `wave_comp`, the compiled wave.comp
//   void wave(Context call, ConstTensor<float> x, double speed, MutTensor<float> out) {
//     launch(call, wave_comp, vulkan_groups(out.size(), 256), x, out, out.size(), static_cast<float>(speed));
//   }
//
// A file has one kernel, `main`, whose arguments are its push constants in the order of the call: a tensor is the
// address of its first element (a uint64_t), a number has the very type that the block declares. Bindings do
// not exist. The work is recorded on the call's stream. Nothing of Vulkan's is linked: the loader is opened at the
// first launch. Not the contract: header-only sugar over backplane/abi.
#pragma once

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <type_traits>

#include "backplane/device_kernels/library.hpp"
#include "backplane/plugin/context.hpp"
#include "backplane/plugin/tensor_view.hpp"

namespace backplane::plugin {

// The workgroups along each axis.
struct VulkanGroups {
  VulkanGroups(int64_t x, int64_t y = 1, int64_t z = 1) : x(x), y(y), z(z) {}
  bool is_empty() const { return x == 0 || y == 0 || z == 0; }
  int64_t x, y, z;
};

inline constexpr int64_t kVulkanMostGroups = 65535;  // along an axis, on every device

// The workgroups of `size` invocations that `items` need, at most as many as every device has: a kernel goes on in
// steps of gl_NumWorkGroups.x * gl_WorkGroupSize.x.
inline VulkanGroups vulkan_groups(int64_t items, int64_t size) {
  return {std::min((items + size - 1) / size, kVulkanMostGroups)};
}

namespace vulkan {

inline void check(VkResult result, const char* op, const char* what) {
  if (result == VK_SUCCESS) [[likely]]
    return;
  const bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
  ::backplane::detail::fail(memory                           ? BP_ERROR_MEMORY
                            : result == VK_ERROR_DEVICE_LOST ? BP_ERROR_DEVICE_LOST
                                                             : BP_ERROR_DEVICE,
                            op, ": ", what, " failed with code ", static_cast<int>(result));
}

// The device's own functions.
struct Functions {
  explicit Functions(VkInstance instance, VkDevice device) {
    static const VendorLibrary library("libvulkan.so.1");
    PFN_vkGetInstanceProcAddr of_instance = nullptr;
    library.find(of_instance, "vkGetInstanceProcAddr");
    PFN_vkGetDeviceProcAddr of_device = nullptr;
    find(of_device, of_instance(instance, "vkGetDeviceProcAddr"), "vkGetDeviceProcAddr");
#define BP_FIND(member, name) find(member, of_device(device, name), name)
    BP_FIND(make_module, "vkCreateShaderModule");
    BP_FIND(end_module, "vkDestroyShaderModule");
    BP_FIND(make_layout, "vkCreatePipelineLayout");
    BP_FIND(end_layout, "vkDestroyPipelineLayout");
    BP_FIND(make_pipeline, "vkCreateComputePipelines");
    BP_FIND(bind, "vkCmdBindPipeline");
    BP_FIND(push, "vkCmdPushConstants");
    BP_FIND(dispatch, "vkCmdDispatch");
#undef BP_FIND
  }

  PFN_vkCreateShaderModule make_module = nullptr;
  PFN_vkDestroyShaderModule end_module = nullptr;
  PFN_vkCreatePipelineLayout make_layout = nullptr;
  PFN_vkDestroyPipelineLayout end_layout = nullptr;
  PFN_vkCreateComputePipelines make_pipeline = nullptr;
  PFN_vkCmdBindPipeline bind = nullptr;
  PFN_vkCmdPushConstants push = nullptr;
  PFN_vkCmdDispatch dispatch = nullptr;

 private:
  template <class Function>
  static void find(Function& function, PFN_vkVoidFunction found, const char* name) {
    BP_CHECK(found, DEVICE, "libvulkan.so.1 lacks ", name, ". Fix: install a newer driver");
    function = reinterpret_cast<Function>(found);
  }
};

template <class T>
T native(Context call, const char* kind) {
  void* handle = nullptr;
  check_status(call.host()->native(call.frame, kind, &handle));
  return static_cast<T>(handle);
}

// The arguments of a kernel as std430 lays out a block: each at a multiple of its size.
class Arguments {
 public:
  static constexpr uint32_t kMost = 128;  // bytes, on every device

  explicit Arguments(Context call) : call_(call) {}
  template <class T>
  void add(const TensorView<T>& tensor) {
    const bp_tensor& t = *tensor.handle();
    add(reinterpret_cast<uint64_t>(t.dl.data) + t.dl.byte_offset);
  }
  template <class T>
  void add(T number) requires(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8)) {
    const uint32_t at = (size_ + sizeof number - 1) / sizeof number * sizeof number;
    BP_CHECK(at + sizeof number <= kMost, VALUE, call_.op_name(), ": the arguments of a Vulkan kernel take more than ",
             kMost, " bytes. Fix: give it fewer, or a tensor that holds the numbers");
    std::memcpy(bytes_.data() + at, &number, sizeof number);
    size_ = at + sizeof number;
  }
  const void* data() const { return bytes_.data(); }

 private:
  Context call_;
  uint32_t size_ = 0;
  std::array<std::byte, kMost> bytes_{};
};

}  // namespace vulkan

// The SPIR-V of a file. The first launch on a device makes a pipeline of it. Pipelines stay as long as
// the device: at the end of a process the driver may have ended before. Any thread.
class VulkanShader {
 public:
  VulkanShader(const char* file, const unsigned char* words, size_t bytes)
      : file_(file), words_(words), bytes_(bytes) {}
  VulkanShader(const VulkanShader&) = delete;

  void record(Context call, const VulkanGroups& groups, const vulkan::Arguments& arguments) {
    for (const int64_t count : {groups.x, groups.y, groups.z})
      BP_CHECK(count >= 0 && count <= kVulkanMostGroups, VALUE, call.op_name(), ": a launch of ", file_, " with ",
               count, " workgroups along an axis; expected 0 to ", kVulkanMostGroups,
               ". Fix: let each invocation take several items, and use vulkan_groups");
    if (groups.is_empty()) return;
    const Made& made = of(call);
    auto* const commands = vulkan::native<VkCommandBuffer>(call, "VkCommandBuffer");
    made.functions.bind(commands, VK_PIPELINE_BIND_POINT_COMPUTE, made.pipeline);
    made.functions.push(commands, made.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, vulkan::Arguments::kMost,
                        arguments.data());
    made.functions.dispatch(commands, static_cast<uint32_t>(groups.x), static_cast<uint32_t>(groups.y),
                            static_cast<uint32_t>(groups.z));
  }

 private:
  struct Made {
    vulkan::Functions functions;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkPipeline pipeline = VK_NULL_HANDLE;
  };

  const Made& of(Context call) {
    auto* const device = vulkan::native<VkDevice>(call, "VkDevice");
    const std::lock_guard guard(lock_);
    const auto at = devices_.find(device);
    return at != devices_.end() ? at->second : devices_.emplace(device, make(call, device)).first->second;
  }

  Made make(Context call, VkDevice device) const {
    Made made{vulkan::Functions(vulkan::native<VkInstance>(call, "VkInstance"), device)};
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, vulkan::Arguments::kMost};
    VkPipelineLayoutCreateInfo layout{};
    layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout.pushConstantRangeCount = 1;
    layout.pPushConstantRanges = &range;
    VkShaderModuleCreateInfo module{};
    module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module.codeSize = bytes_;
    module.pCode = reinterpret_cast<const uint32_t*>(words_);
    VkShaderModule shader = VK_NULL_HANDLE;
    vulkan::check(made.functions.make_module(device, &module, nullptr, &shader), call.op_name(),
                  "vkCreateShaderModule");
    VkResult result = made.functions.make_layout(device, &layout, nullptr, &made.layout);
    if (result == VK_SUCCESS) {
      VkComputePipelineCreateInfo info{};
      info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
      info.layout = made.layout;
      info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
      info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
      info.stage.module = shader;
      info.stage.pName = "main";
      result = made.functions.make_pipeline(device, VK_NULL_HANDLE, 1, &info, nullptr, &made.pipeline);
    }
    made.functions.end_module(device, shader, nullptr);
    if (result != VK_SUCCESS && made.layout) made.functions.end_layout(device, made.layout, nullptr);
    vulkan::check(result, call.op_name(), file_);
    return made;
  }

  const char* const file_;
  const unsigned char* const words_;  // aligned as words
  const size_t bytes_;
  std::mutex lock_;
  std::map<VkDevice, Made> devices_;  // guarded by lock_
};

// Records the kernel on the call's stream, in so many workgroups. Arguments are tensors, and numbers of 4 or 8 bytes of
// the very types that the block of push constants declares, 128 bytes in all. Without workgroups nothing is launched.
template <class... Types>
void launch(Context call, VulkanShader& shader, VulkanGroups groups, const Types&... arguments) {
  vulkan::Arguments pushed(call);
  (pushed.add(arguments), ...);
  shader.record(call, groups, pushed);
}

}  // namespace backplane::plugin
