// Memory that was lent to a checked kernel in earlier calls. A row keeps the blocks of its latest calls, to see what
// the kernel writes there.
//
// A block is its device's until that is lost, reset or registered anew; then nobody reads it or gives it back.
#pragma once

#include <map>
#include <vector>

#include "memory/devices/device.hpp"

namespace backplane::core {

struct RetiredBlock {
  Device* device;
  void* data;
  uint64_t size;
  bool was_argument;    // or scratch memory
  uint32_t generation;  // of the device, as the backend gave it
};

// That the backend has just given.
RetiredBlock lent_block(Device& device, void* data, uint64_t size, bool is_argument);
// To the device, if it still is that device's. Any thread.
void give_back(const RetiredBlock& block) noexcept;

// Of one row, whose calls may run side by side.
class RetiredBlocks {
 public:
  RetiredBlocks() = default;
  ~RetiredBlocks();  // gives all back
  RetiredBlocks(const RetiredBlocks&) = delete;

  // The blocks of a device, for one call. They return to the row when the call ends or throws.
  class Taken {
   public:
    Taken(RetiredBlocks& from, Device& device);
    ~Taken();
    Taken(const Taken&) = delete;
    std::vector<RetiredBlock> blocks;

   private:
    RetiredBlocks& from_;
    Device& device_;
  };

 private:
  std::map<Device*, std::vector<RetiredBlock>> of_;
};

}  // namespace backplane::core
