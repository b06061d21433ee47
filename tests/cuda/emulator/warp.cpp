// How lanes run, part and meet; see warp.hpp.
#include "warp.hpp"

#include <algorithm>
#include <bit>

namespace emulator {
namespace {
constexpr int kIllegalAddress = 700, kMisaligned = 716, kLaunchFailed = 719;
}

Warp::Warp(Block& block, uint32_t number) : block_(block), number_(number) {
  const uint64_t threads = block.launch.block.count();
  for (int lane = 0; lane < kLanes; ++lane) {
    if (lane_thread(lane) >= threads) continue;
    launched_ |= 1u << lane;
    enter(lane, block.launch.function, nullptr, 0);
  }
  live_ = launched_;
}

void Warp::enter(int lane, const Function* function, const Instruction::Call* call, uint32_t return_to) {
  Lane& at = lanes_[static_cast<size_t>(lane)];
  Frame frame{function, 0, 0, return_to, call};
  if (!at.frames.empty()) {
    const Frame& caller = at.frames.back();
    frame.base = caller.base + caller.function->registers;
    frame.local_base = caller.local_base + caller.function->local_bytes;
  }
  auto& local = local_[static_cast<size_t>(lane)];
  if (local.size() < frame.local_base + function->local_bytes) local.resize(frame.local_base + function->local_bytes);
  if (call)
    for (const auto& copy : call->in)
      std::memcpy(&local[frame.local_base + copy.to], &local[at.frames.back().local_base + copy.from], copy.size);
  if (registers_.size() < (frame.base + uint64_t{function->registers}) * kLanes)
    registers_.resize((frame.base + uint64_t{function->registers}) * kLanes);
  at.frames.push_back(frame);
  at.depth = static_cast<uint32_t>(at.frames.size());
  at.pc = 0;
}

void Warp::leave(int lane) {
  Lane& at = lanes_[static_cast<size_t>(lane)];
  const Frame done = at.frames.back();
  at.frames.pop_back();
  at.depth = static_cast<uint32_t>(at.frames.size());
  if (at.frames.empty()) {
    live_ &= ~(1u << lane);
    return;
  }
  auto& local = local_[static_cast<size_t>(lane)];
  for (const auto& copy : done.call->out)
    std::memcpy(&local[at.frames.back().local_base + copy.from], &local[done.local_base + copy.to], copy.size);
  at.pc = done.return_to;
}

// Of these lanes those that do not stand at an instruction that waits for other lanes.
uint32_t Warp::elsewhere(uint32_t lanes) const {
  uint32_t found = 0;
  for (uint32_t m = lanes; m; m &= m - 1) {
    const Lane& lane = lanes_[static_cast<size_t>(std::countr_zero(m))];
    if (!lane.frames.back().function->code[lane.pc].collective) found |= m & (~m + 1);
  }
  return found;
}

// The lanes that run next, and their common state. Lanes that wait for others let all others come as far first.
uint32_t Warp::select() {
  const uint32_t all = live_ & ~waiting_, moving = elsewhere(all);
  const uint32_t ready = moving ? moving : all;
  const Lane* best = nullptr;
  for (uint32_t m = ready; m; m &= m - 1) {
    const Lane& lane = lanes_[static_cast<size_t>(std::countr_zero(m))];
    if (!best || lane.depth > best->depth || (lane.depth == best->depth && lane.pc < best->pc)) best = &lane;
  }
  mask_ = 0;
  stop_ = UINT32_MAX;
  if (!best) return 0;
  const Frame& frame = best->frames.back();
  for (uint32_t m = all; m; m &= m - 1) {
    const Lane& lane = lanes_[static_cast<size_t>(std::countr_zero(m))];
    const Frame& other = lane.frames.back();
    if (lane.depth != best->depth || other.base != frame.base || other.function != frame.function) continue;
    if (lane.pc == best->pc)
      mask_ |= 1u << std::countr_zero(m);
    else
      stop_ = std::min(stop_, lane.pc);
  }
  base_ = frame.base;
  local_base_ = frame.local_base;
  return best->pc;
}

Warp::State Warp::state() const {
  if (live_ == 0) return State::kDone;
  return (live_ & ~waiting_) == 0 ? State::kAtBarrier : State::kRunning;
}
const Instruction* Warp::barrier() const { return barrier_; }

void Warp::pass_barrier() {
  waiting_ = 0;
  barrier_ = nullptr;
  ++time_;
}

Warp::State Warp::run(uint64_t steps) {
  while (state() == State::kRunning && steps > 0) {
    uint32_t pc = select();
    const Function* function = lanes_[static_cast<size_t>(std::countr_zero(mask_))].frames.back().function;
    const Instruction* code = function->code.data();
    bool together = true;
    while (together && steps > 0) {
      --steps;
      const Instruction& instruction = code[pc];
      if (instruction.collective && elsewhere(live_ & ~waiting_ & ~mask_)) break;
      if (instruction.flow == Flow::kNext && instruction.guard < 0) {
        instruction.run(*this, instruction);
        ++pc;
      } else {
        together = step(instruction, pc);
      }
      if (pc >= stop_) break;
    }
    if (together)
      for (uint32_t m = mask_; m; m &= m - 1) lanes_[static_cast<size_t>(std::countr_zero(m))].pc = pc;
  }
  return state();
}

// One instruction that has a guard or changes the place. False: the lanes no longer stand together; each knows its
// place.
bool Warp::step(const Instruction& instruction, uint32_t& pc) {
  const uint32_t all = mask_;
  uint32_t active = all;
  if (instruction.guard >= 0) {
    const auto holds = static_cast<uint32_t>(*column(static_cast<uint32_t>(instruction.guard)));
    active &= instruction.negated ? ~holds : holds;
  }
  if (instruction.flow == Flow::kNext || active == 0) {
    mask_ = active;
    if (active) instruction.run(*this, instruction);
    mask_ = all;
    ++pc;
    return true;
  }
  if (instruction.flow == Flow::kBranch && active == all) {
    if (instruction.target == pc && instruction.guard < 0 && all == live_) throw NeverEnds();
    pc = instruction.target;
    return true;
  }
  for (uint32_t m = all; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    Lane& at = lanes_[static_cast<size_t>(lane)];
    if (!(active >> lane & 1)) {
      at.pc = pc + 1;
      continue;
    }
    switch (instruction.flow) {
      case Flow::kBranch:
        at.pc = instruction.target;
        break;
      case Flow::kCall:
        enter(lane, instruction.call->callee, instruction.call, pc + 1);
        break;
      case Flow::kReturn:
        leave(lane);
        break;
      case Flow::kExit:
        live_ &= ~(1u << lane);
        break;
      default:  // a barrier: the lanes of a warp must all come to the same one
        if (barrier_ && barrier_ != &instruction)
          fail(instruction, lane, kLaunchFailed,
               "divergent barrier: lanes of this warp wait at line " + std::to_string(barrier_->line));
        barrier_ = &instruction;
        waiting_ |= 1u << lane;
        at.pc = pc + 1;
    }
  }
  // Lanes that have ended, or stand elsewhere for good, never come.
  if (barrier_ && (live_ & ~waiting_) == 0 && waiting_ != launched_)
    fail(*barrier_, std::countr_zero(waiting_), kLaunchFailed,
         "divergent barrier: not all lanes of the warp come to it");
  return false;
}

void Warp::fail(const Instruction& instruction, int lane, int code, const std::string& what) const {
  const Extent& size = block_.launch.block;
  const uint32_t thread = lane_thread(lane);
  const auto place = [](uint32_t x, uint32_t y, uint32_t z) {
    return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
  };
  throw Fault(code, what + "; kernel " + block_.launch.name() + ", block " +
                        place(block_.index.x, block_.index.y, block_.index.z) + ", thread " +
                        place(thread % size.x, thread / size.x % size.y, thread / size.x / size.y) + ", line " +
                        std::to_string(instruction.line) + ": " + std::string(instruction.text));
}

void Warp::touch_shared(const Instruction& instruction, int lane, uint64_t offset, uint32_t size, bool writes) {
  const uint32_t me = lane_thread(lane) + 1;
  const auto together = [&](uint32_t other, uint32_t time, uint32_t warp_time) {
    if (other == 0 || other == me || time != block_.time) return false;
    return (other - 1) / kLanes != number_ || warp_time == time_;
  };
  for (uint64_t k = offset; k < offset + size; ++k) {
    Touch& touch = block_.touches[k];
    const bool race = together(touch.writer, touch.write_time, touch.write_warp_time) ||
                      (writes && together(touch.reader, touch.read_time, touch.read_warp_time));
    if (race)
      fail(
          instruction, lane, kLaunchFailed,
          "race on shared memory: byte " + std::to_string(k) + " was " +
              (together(touch.writer, touch.write_time, touch.write_warp_time) ? "written" : "read") + " by thread " +
              std::to_string(
                  (together(touch.writer, touch.write_time, touch.write_warp_time) ? touch.writer : touch.reader) - 1) +
              " with no barrier between");
    if (!writes && !block_.shared_written[k])
      fail(instruction, lane, kLaunchFailed,
           "reads " + std::to_string(size) + " bytes of shared memory that nothing has written, at " +
               std::to_string(offset));
    if (writes) {
      touch.writer = me, touch.write_time = block_.time, touch.write_warp_time = time_;
      block_.shared_written[k] = 1;
    } else {
      // Two readers and a writer of the one: what another warp reads is kept first, since no warp barrier orders it.
      touch.reader = me, touch.read_time = block_.time, touch.read_warp_time = time_;
    }
  }
}

// Where the bytes of an access lie, if it may be made.
uint8_t* Warp::bytes(const Instruction& instruction, int lane, uint64_t address, uint32_t size, bool writes) {
  Space space = instruction.space;
  if (address % size != 0)
    fail(instruction, lane, kMisaligned,
         "an access of " + std::to_string(size) + " bytes at an address that is " + std::to_string(address % size) +
             " more than a multiple of it");
  if (space == Space::kGeneric) {
    if (address - kSharedWindow < kWindow) space = Space::kShared, address -= kSharedWindow;
    if (address - kLocalWindow < kWindow) space = Space::kLocal, address -= kLocalWindow;
  }
  if (space == Space::kShared) {
    if (address + size > block_.shared.size())
      fail(instruction, lane, kIllegalAddress,
           "shared memory out of bounds: byte " + std::to_string(address) + " of " +
               std::to_string(block_.shared.size()));
    touch_shared(instruction, lane, address, size, writes);
    return block_.shared.data() + address;
  }
  if (space == Space::kLocal) {
    auto& local = local_[static_cast<size_t>(lane)];
    if (address + size > local.size()) fail(instruction, lane, kIllegalAddress, "local memory out of bounds");
    return local.data() + address;
  }
  const auto& parameters = block_.launch.parameters;
  const uint64_t first = reinterpret_cast<uint64_t>(parameters.data());
  if (space != Space::kGlobal && address >= first && address + size <= first + parameters.size() && !writes)
    return reinterpret_cast<uint8_t*>(address);
  Memory& memory = Memory::instance();
  try {
    if (!memory.contains(address)) memory.check_range(writes ? "writes" : "reads", address, size);
    writes ? memory.write(address, size) : memory.check_read(address, size);
  } catch (const Fault& fault) {
    fail(instruction, lane, fault.code, fault.what());
  }
  return reinterpret_cast<uint8_t*>(address);
}

void Warp::read(const Instruction& instruction, int lane, uint64_t address, void* to, uint32_t size) {
  std::memcpy(to, bytes(instruction, lane, address, size, false), size);
}
void Warp::write(const Instruction& instruction, int lane, uint64_t address, const void* from, uint32_t size) {
  std::memcpy(bytes(instruction, lane, address, size, true), from, size);
}

void Warp::copy_later(const Instruction& instruction, int lane, uint64_t to, const std::array<uint8_t, 16>& data) {
  (void)bytes(instruction, lane, to, 16, true);
  std::fill_n(block_.shared_written.begin() + static_cast<ptrdiff_t>(to), 16, uint8_t{0});
  copies_[static_cast<size_t>(lane)].push_back({&instruction, to, data});
}
void Warp::wait_for_copies(int lane) {
  auto& copies = copies_[static_cast<size_t>(lane)];
  for (const Copy& copy : copies) write(*copy.instruction, lane, copy.to, copy.bytes.data(), 16);
  copies.clear();
}

}  // namespace emulator
