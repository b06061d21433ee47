// A warp: 32 lanes that run a function's instructions, the lanes that stand at one place together.
//
// Of the lanes that may run, those deepest in calls and lowest in the code go first, which brings lanes together again
// behind a branch. A block is its warps and their shared memory; warps take turns at barriers.
#pragma once

#include <cstring>
#include <random>

#include "memory.hpp"
#include "program.hpp"

namespace emulator {

struct Extent {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

struct Launch {
  Module* module;
  const Function* function;
  Extent grid, block;
  uint32_t dynamic_shared = 0;
  std::vector<uint8_t> parameters;
  std::string name() const { return function->name; }
};

inline constexpr uint64_t kSharedWindow = uint64_t{1} << 56;
inline constexpr uint64_t kLocalWindow = uint64_t{1} << 57;
inline constexpr uint64_t kWindow = uint64_t{1} << 32;

// The last access to a byte of shared memory: thread + 1 in the low bits, and when, in barriers that the block and the
// warp have passed.
struct Touch {
  uint32_t writer = 0, write_time = 0, write_warp_time = 0;
  uint32_t reader = 0, read_time = 0, read_warp_time = 0;
};

struct Block {
  const Launch& launch;
  Extent index;
  uint32_t time = 0;  // barriers passed
  std::vector<uint8_t> shared;
  std::vector<uint8_t> shared_written;
  std::vector<Touch> touches;
};

class Warp {
 public:
  Warp(Block& block, uint32_t number);

  enum class State { kRunning, kAtBarrier, kDone };
  State run(uint64_t steps);  // throws Fault
  State state() const;
  const Instruction* barrier() const;
  void pass_barrier();

  // What handlers use.
  uint32_t mask() const { return mask_; }
  uint64_t* column(uint32_t reg) { return registers_.data() + (base_ + reg) * kLanes; }
  const uint64_t* column(const Source& source) { return source.fixed ? source.fixed : column(source.reg); }
  Block& block() { return block_; }
  uint32_t lane_thread(int lane) const { return number_ * kLanes + static_cast<uint32_t>(lane); }
  void read(const Instruction& instruction, int lane, uint64_t address, void* to, uint32_t size);
  void write(const Instruction& instruction, int lane, uint64_t address, const void* from, uint32_t size);
  // cp.async of 16 bytes, the last of them zeros: nobody may read there until the lane has waited.
  void copy_later(const Instruction& instruction, int lane, uint64_t to, const std::array<uint8_t, 16>& bytes);
  void wait_for_copies(int lane);
  uint64_t local_base() const { return local_base_; }
  uint32_t launched() const { return launched_; }
  void sync_warp() { ++time_; }
  uint32_t& carry() { return carry_; }
  [[noreturn]] void fail(const Instruction& instruction, int lane, int code, const std::string& what) const;

 private:
  struct Frame {
    const Function* function;
    uint32_t base;        // of registers
    uint64_t local_base;  // of local memory
    uint32_t return_to;   // in the caller
    const Instruction::Call* call;
  };
  struct Lane {
    uint32_t pc = 0;
    uint32_t depth = 0;
    std::vector<Frame> frames;
  };

  void enter(int lane, const Function* function, const Instruction::Call* call, uint32_t return_to);
  void leave(int lane);
  uint32_t elsewhere(uint32_t lanes) const;
  uint32_t select();
  bool step(const Instruction& instruction, uint32_t& pc);
  uint8_t* bytes(const Instruction& instruction, int lane, uint64_t address, uint32_t size, bool writes);
  void touch_shared(const Instruction& instruction, int lane, uint64_t offset, uint32_t size, bool writes);

  struct Copy {
    const Instruction* instruction;
    uint64_t to;
    std::array<uint8_t, 16> bytes;
  };

  Block& block_;
  const uint32_t number_;
  uint32_t launched_ = 0, live_ = 0, waiting_ = 0;
  std::array<Lane, kLanes> lanes_;
  std::array<std::vector<uint8_t>, kLanes> local_;
  std::array<std::vector<Copy>, kLanes> copies_;  // that have not arrived
  std::vector<uint64_t> registers_;
  // Of the lanes that run now.
  uint32_t mask_ = 0;
  uint32_t base_ = 0;
  uint64_t local_base_ = 0;
  uint32_t stop_ = 0;  // where other lanes stand
  uint32_t time_ = 0;
  uint32_t carry_ = 0;
  const Instruction* barrier_ = nullptr;
};

// Runs a grid, its blocks and warps in an order that follows from the seed. Throws Fault.
void run_grid(const Launch& launch, std::mt19937_64& random);

}  // namespace emulator
