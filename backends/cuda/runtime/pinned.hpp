// Host memory that the devices read and write on their own.
//
// It is the process's own, locked by the driver: tensors of the host lie in it, and outlive the context that locked it
// where the device is reset. Any thread may call.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "driver/driver.hpp"

namespace backplane::cuda {

class PinnedMemory {
 public:
  ~PinnedMemory();  // frees what was not released

  // The context that locks it is the calling thread's current one. They throw backplane::Error.
  void* allocate(uint64_t size);
  void release(void* data);
  void lock_again();  // all of it, once the context was reset
  bool empty();

  void check_inside(const void* data, uint64_t size);

 private:
  std::mutex mutex_;
  std::map<const char*, uint64_t> blocks_;  // sizes; guarded by mutex_
};

}  // namespace backplane::cuda
