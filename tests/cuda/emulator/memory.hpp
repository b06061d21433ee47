// The devices' memory: one range of the process's addresses, with a byte of state per byte.
//
// Blocks are far enough from each other that no access of one instruction reaches from one into the next; a freed block
// is handed out again only when everything behind it has been. A block is one device's, which others see only with
// access to their peer, or every device's. Not locked: the driver's one lock is held.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace emulator {

class Memory {
 public:
  static constexpr uint64_t kReserved = uint64_t{8} << 30;
  static constexpr int kEveryDevice = -1, kNoDevice = -2;

  Memory();
  static Memory& instance();

  // 0: the memory is exhausted.
  uint64_t allocate(uint64_t size, const std::string& what, int device = kEveryDevice);
  bool free(uint64_t address);
  void free_all(int device);
  uint64_t in_use(int device) const;
  uint64_t blocks() const { return blocks_.size(); }
  int device_at(uint64_t address) const;  // of the block there; kNoDevice: there is none

  // Accesses are a device's from now on, which sees the memory of `peers` beside its own, a bit each.
  void look_from(int device, uint32_t peers) {
    mask_ = static_cast<uint8_t>(kState | (kOwner & ~(uint32_t{kFirstOwner} << device | peers * kFirstOwner)));
  }
  void look_from_everywhere() { mask_ = kState; }

  bool contains(uint64_t address) const { return address - base_ < kReserved; }
  // Throw a Fault that says what the range is not.
  void check_read(uint64_t address, uint64_t size) const {
    const uint8_t* state = states_ + (address - base_);
    for (uint64_t k = 0; k < size; ++k)
      if ((state[k] & mask_) != kWritten) [[unlikely]]
        refuse("reads", address, size, k);
  }
  void write(uint64_t address, uint64_t size) {
    uint8_t* state = states_ + (address - base_);
    for (uint64_t k = 0; k < size; ++k) {
      if (!is_open(state[k])) [[unlikely]]
        refuse("writes", address, size, k);
      state[k] |= kWritten;
    }
  }
  // Copies may carry bytes that nobody has written: they stay such.
  void check_range(const char* verb, uint64_t address, uint64_t size) const;
  void copy_states(uint64_t to, uint64_t from, uint64_t size);
  std::string describe(uint64_t address) const;

 private:
  // The lower bits of a byte's state; above them a bit for the device that owns it.
  enum State : uint8_t { kOutside = 0, kFreed = 1, kAllocated = 2, kWritten = 3 };
  enum : uint8_t { kState = 3, kFirstOwner = 4, kOwner = 0xfc };
  struct Block {
    uint64_t size;
    std::string what;
    int device;
  };
  bool is_open(uint8_t state) const { return ((state & mask_) | 1) == kWritten; }
  [[noreturn]] void refuse(const char* verb, uint64_t address, uint64_t size, uint64_t at) const;

  uint64_t base_ = 0;
  uint8_t* states_ = nullptr;
  uint64_t next_;
  std::map<uint64_t, Block> blocks_;
  std::map<uint64_t, Block> freed_;
  std::map<int, uint64_t> in_use_;  // by device
  uint8_t mask_ = kState;
};

}  // namespace emulator
