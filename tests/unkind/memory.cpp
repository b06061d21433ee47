#include "memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "backplane/error.hpp"

namespace unkind {
namespace {

constexpr uint64_t kUnit = 256;       // alignment of names
constexpr uint64_t kGap = 64 << 10;   // between two blocks
constexpr unsigned char kNew = 0xff;  // of bytes that nothing has written
constexpr unsigned char kFreed = 0xfe;

}  // namespace

Block& Memory::allocate(uint64_t size) {
  BP_CHECK(size > 0 && size <= capacity_ - in_use_, MEMORY, "unkind: ", size, " bytes wanted, ", in_use_, " of ",
           capacity_, " are in use");
  auto made = std::make_unique<Block>();
  made->bytes.reset(new (std::nothrow) char[size]);
  BP_CHECK(made->bytes, MEMORY, "unkind: the host has no memory for ", size, " bytes");
  std::memset(made->bytes.get(), kNew, size);
  made->id = next_id_++;
  made->size = size;
  made->name = addressable_ ? next_name_ : made->id * 8;
  next_name_ += (size + kUnit - 1) / kUnit * kUnit + kGap;
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
  Block& block = *made;
  by_id_.emplace(block.id, &block);
  blocks_.emplace(block.name, std::move(made));
  return block;
}

Block* Memory::find(const void* data, uint64_t* offset) {
  const auto name = reinterpret_cast<uintptr_t>(data);
  auto found = blocks_.upper_bound(name);
  if (found == blocks_.begin()) return nullptr;
  Block& block = *(--found)->second;
  *offset = name - block.name;
  if (addressable_ ? *offset >= block.size : *offset != 0) return nullptr;
  return &block;
}

Block* Memory::at(uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

void Memory::release(Block& block) {
  std::memset(block.bytes.get(), kFreed, block.size);
  in_use_ -= block.size;
  by_id_.erase(block.id);
  blocks_.erase(block.name);
}

void Memory::clear() {
  while (!blocks_.empty()) release(*blocks_.begin()->second);
}

}  // namespace unkind
