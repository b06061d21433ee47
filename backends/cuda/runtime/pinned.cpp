// Pages of the process, registered with the driver; see pinned.hpp.
#include "runtime/pinned.hpp"

#include <cstdlib>

#include "backplane/error.hpp"

namespace backplane::cuda {
namespace {

constexpr uint64_t kPage = 4096;

void lock_pages(void* data, uint64_t size) {
  check(the_driver().cuMemHostRegister_v2(data, size, driver::kHostRegisterPortable), "cuMemHostRegister");
}

}  // namespace

PinnedMemory::~PinnedMemory() {
  for (const auto& [data, size] : blocks_) std::free(const_cast<char*>(data));
}

void* PinnedMemory::allocate(uint64_t size) {
  const uint64_t rounded = (size + kPage - 1) / kPage * kPage;
  void* data = rounded >= size ? std::aligned_alloc(kPage, rounded) : nullptr;
  BP_CHECK(data, MEMORY, "cuda: the host has no memory for ", size, " bytes to pin");
  std::lock_guard lock(mutex_);
  try {
    lock_pages(data, rounded);
    blocks_.emplace(static_cast<const char*>(data), rounded);
  } catch (...) {
    std::free(data);
    throw;
  }
  return data;
}

void PinnedMemory::release(void* data) {
  std::lock_guard lock(mutex_);
  BP_CHECK(blocks_.erase(static_cast<const char*>(data)), VALUE, "cuda: ", data, " is not pinned memory");
  (void)the_driver().cuMemHostUnregister(data);  // of a lost device it fails, and nothing is locked any more
  std::free(data);
}

void PinnedMemory::lock_again() {
  std::lock_guard lock(mutex_);
  for (const auto& [data, size] : blocks_) lock_pages(const_cast<char*>(data), size);
}

bool PinnedMemory::empty() {
  std::lock_guard lock(mutex_);
  return blocks_.empty();
}

void PinnedMemory::check_inside(const void* data, uint64_t size) {
  const char* begin = static_cast<const char*>(data);
  std::lock_guard lock(mutex_);
  auto found = blocks_.upper_bound(begin);
  const bool inside = found != blocks_.begin() && begin + size <= (--found)->first + found->second;
  BP_CHECK(inside, DEVICE, "cuda: the ", size, " bytes at ", data, " are not pinned memory");
}

}  // namespace backplane::cuda
