// Blocks and the states of their bytes; see memory.hpp.
#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "program.hpp"

namespace emulator {
namespace {

constexpr uint64_t kGap = 512;  // between blocks
constexpr uint64_t kAlignment = 256;
constexpr int kIllegalAddress = 700;

void* reserve(uint64_t size) {
  void* made = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) throw Fault(2, "the emulator finds no addresses for its memory");
  return made;
}

}  // namespace

Memory::Memory()
    : base_(reinterpret_cast<uint64_t>(reserve(kReserved))),
      states_(static_cast<uint8_t*>(reserve(kReserved))),
      next_(base_ + kGap) {}

Memory& Memory::instance() {
  static Memory* memory = new Memory();  // outlives the process's other statics
  return *memory;
}

uint64_t Memory::allocate(uint64_t size, const std::string& what, int device) {
  const uint64_t room = (size + kGap + kAlignment - 1) / kAlignment * kAlignment;
  if (room < size) return 0;
  for (int turn = 0; turn < 2; ++turn) {
    // The first place from `next_` on that no living block reaches into.
    uint64_t at = (next_ + kAlignment - 1) / kAlignment * kAlignment;
    for (auto block = blocks_.lower_bound(at); block != blocks_.end(); ++block) {
      if (block->first >= at && block->first - at >= room) break;
      at = (block->first + block->second.size + kGap + kAlignment - 1) / kAlignment * kAlignment;
    }
    if (at - base_ <= kReserved && room <= kReserved - (at - base_)) {
      freed_.erase(freed_.lower_bound(at), freed_.lower_bound(at + room));
      const int owner = device == kEveryDevice ? 0 : kFirstOwner << device;
      std::memset(states_ + (at - base_), kAllocated | owner, size);
      blocks_[at] = {size, what, device};
      in_use_[device] += size;
      next_ = at + room;
      return at;
    }
    next_ = base_ + kGap;
  }
  return 0;
}

bool Memory::free(uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return false;
  std::memset(states_ + (address - base_), kFreed, found->second.size);
  in_use_[found->second.device] -= found->second.size;
  if (found->second.size > (1 << 20))  // a large block's pages go back to the system
    madvise(reinterpret_cast<void*>((address + 4095) / 4096 * 4096), found->second.size / 4096 * 4096 - 4096,
            MADV_DONTNEED);
  freed_[address] = found->second;
  blocks_.erase(found);
  return true;
}

void Memory::free_all(int device) {
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const auto next = std::next(block);
    if (block->second.device == device) free(block->first);
    block = next;
  }
}

uint64_t Memory::in_use(int device) const {
  const auto found = in_use_.find(device);
  return found == in_use_.end() ? 0 : found->second;
}

int Memory::device_at(uint64_t address) const {
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return kNoDevice;
  const auto& [begin, block] = *std::prev(after);
  return address - begin < block.size ? block.device : kNoDevice;
}

void Memory::check_range(const char* verb, uint64_t address, uint64_t size) const {
  if (size == 0) return;
  if (!contains(address) || size > kReserved - (address - base_)) refuse(verb, address, size, 0);
  const uint8_t* state = states_ + (address - base_);
  const uint8_t* bad = std::find_if(state, state + size, [this](uint8_t s) { return !is_open(s); });
  if (bad != state + size) refuse(verb, address, size, static_cast<uint64_t>(bad - state));
}

void Memory::copy_states(uint64_t to, uint64_t from, uint64_t size) {
  const std::vector<uint8_t> carried(states_ + (from - base_), states_ + (from - base_) + size);
  uint8_t* state = states_ + (to - base_);
  for (uint64_t k = 0; k < size; ++k) state[k] = static_cast<uint8_t>((state[k] & kOwner) | (carried[k] & kState));
}

std::string Memory::describe(uint64_t address) const {
  const auto near = [&](const std::map<uint64_t, Block>& blocks, const char* kind) -> std::string {
    const auto after = blocks.upper_bound(address);
    if (after == blocks.begin()) return "";
    const auto& [begin, block] = *std::prev(after);
    const uint64_t into = address - begin;
    if (into >= block.size + kGap) return "";
    const std::string of =
        "the " + std::string(kind) + "block of " + std::to_string(block.size) + " bytes (" + block.what + ")";
    return into < block.size ? "byte " + std::to_string(into) + " of " + of
                             : std::to_string(into - block.size) + " bytes behind " + of;
  };
  std::string found = near(blocks_, "");
  if (found.empty()) found = near(freed_, "freed ");
  return found.empty() ? "no block is near" : found;
}

void Memory::refuse(const char* verb, uint64_t address, uint64_t size, uint64_t at) const {
  const bool inside = contains(address + at);
  const uint8_t byte = inside ? states_[address + at - base_] : uint8_t{kOutside};
  const uint8_t state = byte & kState;
  const char* what = (byte & kOwner & mask_) && state >= kAllocated
                         ? "memory of a device without access to it as its peer"
                     : state == kAllocated ? "memory that nothing has written"
                     : state == kFreed     ? "memory after its free"
                                           : "memory out of bounds";
  throw Fault(kIllegalAddress, std::string(verb) + " " + std::to_string(size) + " bytes of " + what + ": " +
                                   (inside ? describe(address + at) : "not an address of the device"));
}

}  // namespace emulator
