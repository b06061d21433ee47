// The device's memory: one range of the process's addresses, with a byte of state per byte.
//
// Blocks are far enough from each other that no access of one instruction reaches from one into the next; a freed block
// is handed out again only when everything behind it has been. Not locked: the driver's one lock is held.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace emulator {

class Memory {
 public:
  static constexpr uint64_t kReserved = uint64_t{8} << 30;

  Memory();
  static Memory& instance();

  // 0: there is none left.
  uint64_t allocate(uint64_t size, const std::string& what);
  bool free(uint64_t address);
  uint64_t in_use() const { return in_use_; }
  uint64_t blocks() const { return blocks_.size(); }

  bool contains(uint64_t address) const { return address - base_ < kReserved; }
  // Throw a Fault that says what the range is not.
  void check_read(uint64_t address, uint64_t size) const {
    const uint8_t* state = states_ + (address - base_);
    for (uint64_t k = 0; k < size; ++k)
      if (state[k] != kWritten) [[unlikely]]
        refuse("reads", address, size, k);
  }
  void write(uint64_t address, uint64_t size) {
    uint8_t* state = states_ + (address - base_);
    for (uint64_t k = 0; k < size; ++k) {
      if (state[k] < kAllocated) [[unlikely]]
        refuse("writes", address, size, k);
      state[k] = kWritten;
    }
  }
  // Copies may carry bytes that nobody has written: they stay such.
  void check_range(const char* verb, uint64_t address, uint64_t size) const;
  void copy_states(uint64_t to, uint64_t from, uint64_t size);
  std::string describe(uint64_t address) const;

 private:
  enum State : uint8_t { kOutside = 0, kFreed = 1, kAllocated = 2, kWritten = 3 };
  struct Block {
    uint64_t size;
    std::string what;
  };
  [[noreturn]] void refuse(const char* verb, uint64_t address, uint64_t size, uint64_t at) const;

  uint64_t base_ = 0;
  uint8_t* states_ = nullptr;
  uint64_t next_;
  std::map<uint64_t, Block> blocks_;
  std::map<uint64_t, Block> freed_;
  uint64_t in_use_ = 0;
};

}  // namespace emulator
