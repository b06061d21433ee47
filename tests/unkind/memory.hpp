// The memory of one unkind device: each block is an allocation of the host's of its own, whose address the host never
// sees, so that the address sanitizer sees accesses beyond it.
//
// New blocks hold a pattern that is a NaN in every floating dtype. Freed ones are overwritten, and their names are
// never used again. Each block knows the work that touches it and may not have ended: see hazards.hpp. Guarded by the
// scheduler's mutex.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace unkind {

struct Access {
  uint32_t queue;
  uint64_t seq;  // position on the queue
  uint64_t begin, end;
  bool writes;
  std::string what;  // "add, ticket 7"
};

struct Block {
  uint64_t id = 0;
  uintptr_t name = 0;  // what the host was given
  uint64_t size = 0;
  std::unique_ptr<char[]> bytes;
  std::vector<Access> accesses;
  bool given = false;  // to the pool of the extension "memory"
};

class Memory {
 public:
  // Names are addresses whose multiples of 256 may be computed with, or small numbers.
  Memory(bool addressable, uint64_t capacity) : addressable_(addressable), capacity_(capacity) {}

  Block& allocate(uint64_t size);  // throws Error(BP_ERROR_MEMORY)
  // nullptr: no block has this name. With `offset`, how far into the block it points, for addressable memory.
  Block* find(const void* data, uint64_t* offset);
  Block* at(uint64_t id) const;  // nullptr: it was released
  void release(Block& block);
  void clear();

  uint64_t capacity() const { return capacity_; }
  uint64_t in_use() const { return in_use_; }
  uint64_t peak() const { return peak_; }

 private:
  const bool addressable_;
  const uint64_t capacity_;
  std::map<uintptr_t, std::unique_ptr<Block>> blocks_;  // by name
  std::map<uint64_t, Block*> by_id_;
  uint64_t next_id_ = 1;
  uintptr_t next_name_ = uintptr_t{0x5a} << 40;
  uint64_t in_use_ = 0, peak_ = 0;
};

}  // namespace unkind
