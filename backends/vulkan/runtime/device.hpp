// One logical device: its queue, its memory, its streams and the pipelines of the kernels.
//
// A block's name, which the host keeps as `data`, is its 64-bit device address (bufferDeviceAddress), so the host may
// cut blocks into parts, and kernels add byte offsets themselves. Owns all that it makes. `mutex` guards the queue, the
// blocks and the pipelines; waits happen outside it.
#pragma once

#include <vulkan/vulkan.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "backplane/plugin/dtype.hpp"
#include "runtime/clock.hpp"
#include "runtime/region_pipelines.hpp"

namespace backplane::vulkan {

inline constexpr uint32_t kGroupSize = 256;       // invocations of a workgroup, in every shader
inline constexpr uint32_t kMaxGroups = 65535;     // along one dimension, on every device
inline constexpr int64_t kMaxElements = 1 << 30;  // the shaders count in 32 bits

struct Block {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceAddress address = 0;
  uint64_t size = 0;
  char* mapped = nullptr;  // where the host reaches it
};

// What Vulkan's structs are chained with where memory is not the device's to make, and the kinds that it may be of.
struct Foreign {
  const void* buffer = nullptr;
  const void* import = nullptr;
  uint32_t kinds = UINT32_MAX;
};

// A part of a block, as copy commands name it.
struct Place {
  VkBuffer buffer;
  uint64_t offset;
  uint64_t address;
  char* mapped;
};

// Counts of created and submitted objects; `./dev bench vulkan` prints the differences.
struct Counts {
  std::atomic<uint64_t> submissions{0};
  std::atomic<uint64_t> commands{0};
  std::atomic<uint64_t> barriers{0};
  std::atomic<uint64_t> objects{0};           // buffers, pipelines, command buffers
  std::atomic<uint64_t> region_pipelines{0};  // that there are now
};

class Stream;

class Device {
 public:
  explicit Device(VkPhysicalDevice physical);  // throws backplane::Error
  ~Device();                                   // no work is running
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Why a physical device cannot serve; empty: it can.
  static std::string shortcoming(VkPhysicalDevice physical);
  static uint64_t total_memory(VkPhysicalDevice physical);
  // Dtypes whose arithmetic it does not offer.
  static bp_dtype_mask lacks(VkPhysicalDevice physical);
  // Do its subgroups shuffle, and are they full where a shader asks for that? Rows of regions go by such.
  static bool shuffles(VkPhysicalDevice physical);
  static uint32_t timestamp_bits(VkPhysicalDevice physical);  // of what its compute queue writes; 0: it writes none

  // Destroys all its objects, including streams with their work, and starts again, after which a lost device works. No
  // other thread may call. Earlier objects are gone; pipelines of regions that others hold are no longer usable().
  void reset();

  VkPhysicalDevice physical() const { return physical_; }
  VkDevice handle() const { return device_; }
  VkQueue queue() const { return queue_; }
  uint32_t queue_family() const { return family_; }
  bool has_float64() const { return float64_; }
  // Is it the processor? Then shared memory is not faster than other memory.
  bool is_software() const { return software_; }
  // Do products go by shaders/blocks.glsl? Its subgroups broadcast.
  bool uses_blocks() const { return blocks_products_; }
  uint32_t subgroup_size() const { return subgroup_size_; }
  // Workgroups of one dispatch, whose shaders take turns over the rest: on the processor a few per core, so the cost
  // of a workgroup before its first element is paid seldom.
  uint32_t most_groups() const { return most_groups_; }

  VkPipelineLayout layout() const { return pipelines_->layout(); }
  VkPipeline pipeline(const Shader& shader);  // takes the mutex
  // Of a region's shader in SPIR-V; does not take the mutex.
  SharedPipeline pipeline(std::vector<uint32_t> words, bool full_subgroups);

  // Take the mutex. `host_visible`: in memory that the host reaches, whatever the device's own is.
  uint64_t allocate(uint64_t size, bool host_visible = false);
  void deallocate(uint64_t address);                   // of a block, or inside one
  Place place(uint64_t address, uint64_t size) const;  // throws Error(BP_ERROR_VALUE) where they do not lie in a block
  uint64_t reserved() const { return reserved_; }
  uint64_t peak() const { return peak_; }  // of reserved

  // Pages of the host's as copies of this device name them, imported when they are first asked for; none: the device
  // imports no memory. `forget`: before the host frees them.
  std::optional<Place> imported(std::span<char> pages);
  void forget(const char* pages);
  static uint64_t import_alignment(VkPhysicalDevice physical);  // 0: it imports no memory

  Stream& make_stream();
  void destroy_stream(Stream& stream);

  // Memory that the host writes and kernels read; its owner destroys it.
  Block make_staging(uint64_t size);
  void destroy(const Block& block);

  Clock& clock() { return *clock_; }

  mutable std::mutex mutex;
  Counts counts;

 private:
  Block make_block(uint64_t size, VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked,
                   const Foreign& foreign = {});
  void bind_memory(Block& block, VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked, const Foreign& foreign);
  Block import_pages(std::span<char> pages);
  uint32_t memory_type(uint32_t allowed, VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked) const;
  void open();
  void close() noexcept;

  const VkPhysicalDevice physical_;
  VkPhysicalDeviceMemoryProperties memory_{};
  uint32_t family_ = 0;
  bool float64_ = false;
  bool software_ = false, blocks_products_ = false, shuffles_ = false;
  uint32_t subgroup_size_ = 1;
  uint32_t most_groups_ = kMaxGroups;
  bool unified_ = false;  // the host reaches the device's memory as fast as its own
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::unique_ptr<Pipelines> pipelines_;
  std::map<uint64_t, Block> blocks_;  // by address
  bool imports_ = false;
  std::map<const char*, Block> imported_;
  std::map<Stream*, std::unique_ptr<Stream>> streams_;
  std::atomic<uint64_t> reserved_{0}, peak_{0};
  std::unique_ptr<RegionPipelines> region_pipelines_;
  std::unique_ptr<Clock> clock_;
};

}  // namespace backplane::vulkan
