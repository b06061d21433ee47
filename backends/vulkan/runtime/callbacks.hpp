// Functions of the host's that run when a stream has come to a position, as the extension "callbacks" asks for them.
//
// A position is a value of the stream's timeline that nothing on the device signals: a thread, started at the first
// function, waits for the value before it, runs the function and signals it. So what the stream does next, and who
// waits for it, waits for the function as for any batch.
#pragma once

#include <vulkan/vulkan.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

#include "backplane/abi/device_extensions.h"

namespace backplane::vulkan {

class Callbacks {
 public:
  Callbacks(VkDevice device, VkSemaphore timeline) : device_(device), timeline_(timeline) {}
  ~Callbacks();  // when all have run
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  // Runs `function` once the timeline has come to `value` - 1 or the device is lost, then signals `value`.
  void add(uint64_t value, bp_completion_fn function, void* argument);

 private:
  struct Job {
    uint64_t value;
    bp_completion_fn function;
    void* argument;
  };
  void run();

  VkDevice device_;
  VkSemaphore timeline_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace backplane::vulkan
