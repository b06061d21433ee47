// A WebGPU device: its queue, its blocks of memory, and the pipelines of the kernels.
//
// A WebGPU buffer is a handle, and has no address. The host keeps as `data` a number that is made up here: each block
// has a range of numbers of its own, so that kernels may add byte offsets to `data` and `place` finds the block again.
// `mutex` guards the blocks and the pipelines; wgpu-native serialises everything else itself.
#pragma once

#include <webgpu.h>
#include <wgpu.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/shaders.hpp"

namespace minimal {

inline WGPUStringView view_of(std::string_view text) { return {text.data(), text.size()}; }

// A reference to an object of WebGPU.
template <class T, void (*kRelease)(T)>
struct Release {
  using pointer = T;
  void operator()(T object) const { kRelease(object); }
};
template <class T, void (*kRelease)(T)>
using Ref = std::unique_ptr<T, Release<T, kRelease>>;
using Buffer = Ref<WGPUBuffer, wgpuBufferRelease>;

// Bytes of a block, as commands name them.
struct Place {
  WGPUBuffer buffer = nullptr;
  uint64_t offset = 0, block_size = 0;
};

class Device {
 public:
  explicit Device(WGPUAdapter adapter);
  ~Device();  // no stream is left
  Device(const Device&) = delete;

  // Bytes of the largest buffer that kernels can bind.
  static uint64_t largest_block_of(WGPUAdapter adapter);

  uint64_t allocate(uint64_t size);
  void deallocate(uint64_t address);
  Place place(uint64_t address);
  Buffer make_buffer(uint64_t size, WGPUBufferUsage usage, bool is_mapped = false);
  WGPUComputePipeline pipeline(const Shader& shader);
  // Throws what the calls of this thread since the last check have been refused for, or the loss of the device.
  void check(const char* call);
  void note_refusal(WGPUErrorType type, std::string message);  // of a call of this thread

  WGPUDevice handle = nullptr;
  WGPUQueue queue = nullptr;
  WGPUBindGroupLayout bindings = nullptr;
  Buffer unused[kMaxOperands], no_faults;  // what is bound where a kernel has no operand, or is not watched
  std::atomic<bool> is_lost = false;
  const uint64_t largest_block;

 private:
  struct Block {
    Buffer buffer;
    uint64_t size;
  };
  struct Refusal {
    WGPUErrorType type;
    std::string message;
  };
  void make_layout();

  std::mutex refusals_mutex_;
  std::map<std::thread::id, Refusal> refusals_;
  std::atomic<bool> has_refusals_ = false;
  std::mutex mutex_;
  uint64_t next_ = 1 << 16;
  std::map<uint64_t, Block> blocks_;  // by address
  WGPUPipelineLayout layout_ = nullptr;
  std::map<Shader, WGPUComputePipeline> pipelines_;
};

}  // namespace minimal
