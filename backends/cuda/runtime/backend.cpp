// Memory, and the thread's current device; see backend.hpp. The table is in table.cpp.
#include "runtime/backend.hpp"

#include <algorithm>

#include "runtime/check.hpp"

namespace backplane::cuda {

DeviceScope::DeviceScope(int32_t ordinal) : now_(ordinal) {
  check(cudaGetDevice(&before_), "cudaGetDevice");
  if (before_ != now_) check(cudaSetDevice(now_), "cudaSetDevice");
}

DeviceScope::~DeviceScope() {
  if (before_ != now_) (void)cudaSetDevice(before_);
}

void* Backend::take_memory(int32_t ordinal, uint64_t size) {
  const DeviceScope scope(ordinal);
  void* data = nullptr;
  check(cudaMalloc(&data, size), "cudaMalloc");
  std::lock_guard lock(mutex_);
  MemoryUse& use = use_[ordinal];
  use.in_use += size;
  use.peak = std::max(use.peak, use.in_use);
  return data;
}

void Backend::give_memory(int32_t ordinal, void* data, uint64_t size) {
  const DeviceScope scope(ordinal);
  check(cudaFree(data), "cudaFree");
  std::lock_guard lock(mutex_);
  use_[ordinal].in_use -= size;
}

MemoryUse Backend::memory_use(int32_t ordinal) {
  std::lock_guard lock(mutex_);
  return use_[ordinal];
}

}  // namespace backplane::cuda
