// A stream's memory that the host writes and the device reads, or the other way round: parameters of kernels, and bytes
// in transit. A ring: the space of a batch is reused once the batch has ended.
#pragma once

#include <utility>
#include <vector>

#include "runtime/device.hpp"

namespace backplane::vulkan {

class Arena {
 public:
  static constexpr uint64_t kLargest = 16ull << 20;  // bytes of one request

  explicit Arena(Device& device) : device_(device) {}
  ~Arena();  // no work is running
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Stays until the batch that is open now has ended. Aligned to 16 bytes.
  Place take(uint64_t size);
  // Ends the open batch: the blocks that nothing after it uses, to be given back when it has ended.
  std::vector<Block> retire() { return std::exchange(full_, {}); }
  void give_back(const std::vector<Block>& blocks);

 private:
  static constexpr uint64_t kChunk = 1ull << 20;  // shared by small requests
  static constexpr size_t kKept = 4;              // of either size

  Block block(uint64_t size);

  Device& device_;
  Block chunk_;
  uint64_t used_ = 0;           // of chunk_
  std::vector<Block> full_;     // of the open batch
  std::vector<Block> free_[2];  // of kChunk and of kLargest bytes
};

}  // namespace backplane::vulkan
